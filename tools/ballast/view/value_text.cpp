// SPDX-License-Identifier: Apache-2.0
#include "view/value_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ballast/error.h"
#include "fail.h"

namespace tool::view {
namespace {

using ballast::DType;
using ballast::DTypeKind;

template <class Number>
std::string float_text(Number value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  return fmt::format("{}", value);
}

// Five digits tell all values of the dtypes below 32 bits apart.
std::string short_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.5g}", value) : float_text(value);
}

template <class Number, class Text>
std::vector<std::string> texts_as(const ballast::Tensor& tensor, DType dtype, Text text) {
  const ballast::Tensor values = tensor.to(dtype).contiguous();
  std::vector<std::string> out;
  for (const Number value : values.span<Number>()) out.push_back(text(value));
  return out;
}

std::vector<std::string> bit_texts(const ballast::Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
  tensor.read(0, bytes);
  const std::uint64_t bits = ballast::info(tensor.dtype()).bits;
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::uint64_t value = 0;
    const std::uint64_t first = static_cast<std::uint64_t>(i) * bits;
    for (std::uint64_t bit = 0; bit < bits && bit < 64; ++bit) {
      const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>((first + bit) / 8)]);
      value |= static_cast<std::uint64_t>(byte >> (first + bit) % 8 & 1U) << bit;
    }
    out.push_back(fmt::format("{:#x}", value));
  }
  return out;
}

std::vector<std::string> complex_texts(const ballast::Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
  tensor.read(0, bytes);
  const DType part = tensor.dtype() == DType::c32   ? DType::f16
                     : tensor.dtype() == DType::c64 ? DType::f32
                                                    : DType::f64;
  const auto storage = ballast::Storage::borrow(static_cast<const void*>(bytes.data()), bytes.size());
  const std::vector<std::string> parts =
      value_texts(ballast::Tensor::contiguous_view(part, {2 * tensor.numel()}, storage));
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
    out.push_back(fmt::format("{}{}{}j", parts[i], parts[i + 1].starts_with('-') ? "" : "+", parts[i + 1]));
  return out;
}

// The integers of a quantized tensor, as stored.
std::vector<std::string> quantized_texts(const ballast::Tensor& tensor) {
  DType plain = DType::i8;
  if (tensor.dtype() == DType::qu8) plain = DType::u8;
  if (tensor.dtype() == DType::qi32) plain = DType::i32;
  if (tensor.dtype() != DType::qi8 && plain == DType::i8) return bit_texts(tensor);
  const ballast::Tensor packed = tensor.clone();
  return value_texts(ballast::Tensor::contiguous_view(plain, packed.shape(), packed.storage()));
}

}  // namespace

std::vector<std::string> value_texts(const ballast::Tensor& tensor) {
  switch (ballast::info(tensor.dtype()).kind) {
    case DTypeKind::unsigned_integer:
    case DTypeKind::boolean:
      return texts_as<std::uint64_t>(tensor, DType::u64, [](std::uint64_t v) { return std::to_string(v); });
    case DTypeKind::signed_integer:
      return texts_as<std::int64_t>(tensor, DType::i64, [](std::int64_t v) { return std::to_string(v); });
    case DTypeKind::floating:
      if (tensor.dtype() == DType::f64) return texts_as<double>(tensor, DType::f64, float_text<double>);
      if (tensor.dtype() == DType::f32) return texts_as<float>(tensor, DType::f32, float_text<float>);
      return texts_as<double>(tensor, DType::f64, short_text);
    case DTypeKind::complex:
      return complex_texts(tensor);
    case DTypeKind::quantized:
      return quantized_texts(tensor);
    case DTypeKind::opaque:
      break;
  }
  return bit_texts(tensor);
}

namespace {

// Numbers of 64 bits are not all numbers of F64: a difference of 1 would be 0.
template <class Integer>
std::vector<std::string> integer_differences(const ballast::Tensor& a, const ballast::Tensor& b) {
  const ballast::Tensor left = a.contiguous();
  const ballast::Tensor right = b.contiguous();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < left.span<Integer>().size(); ++i) {
    const Integer x = left.span<Integer>()[i];
    const Integer y = right.span<Integer>()[i];
    const auto size = x < y ? static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x)
                            : static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y);
    out.push_back(fmt::format("{}{}", x < y ? "-" : "", size));
  }
  return out;
}

}  // namespace

std::vector<std::string> difference_texts(const ballast::Tensor& a, const ballast::Tensor& b) {
  if (a.dtype() == b.dtype() && a.dtype() == DType::i64) return integer_differences<std::int64_t>(a, b);
  if (a.dtype() == b.dtype() && a.dtype() == DType::u64) return integer_differences<std::uint64_t>(a, b);
  if (!ballast::is_real(a.dtype()) || !ballast::is_real(b.dtype()))
    fail(ballast::Errc::bad_dtype, "difference", "of {} and {} is no number", ballast::info(a.dtype()).code,
         ballast::info(b.dtype()).code);
  const ballast::Tensor left = a.to(DType::f64).contiguous();
  const ballast::Tensor right = b.to(DType::f64).contiguous();
  std::vector<std::string> out;
  for (std::size_t i = 0; i < left.span<double>().size(); ++i) {
    const double x = left.span<double>()[i];
    const double y = right.span<double>()[i];
    out.push_back(short_text(x == y ? 0.0 : x - y));
  }
  return out;
}

}  // namespace tool::view
