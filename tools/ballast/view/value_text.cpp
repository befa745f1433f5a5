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
__extension__ typedef __int128 WideInteger;

bool is_integer(DType dtype) {
  const DTypeKind kind = ballast::info(dtype).kind;
  return kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer;
}

bool is_long_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::u64;
}

// Elements of a real tensor as Numbers that hold them all.
template <class Number>
std::vector<Number> numbers_of(const ballast::Tensor& tensor) {
  std::vector<Number> out;
  const auto add = [&](auto zero, DType dtype) {
    const ballast::Tensor values = tensor.to(dtype).contiguous();
    for (const auto value : values.span<decltype(zero)>()) out.push_back(static_cast<Number>(value));
  };
  if (tensor.dtype() == DType::u64)
    add(std::uint64_t{}, DType::u64);
  else if (is_integer(tensor.dtype()))
    add(std::int64_t{}, DType::i64);
  else
    add(double{}, DType::f64);
  return out;
}

template <class Number, class Text>
std::vector<std::string> differences_of(const ballast::Tensor& a, const ballast::Tensor& b, Text text) {
  const std::vector<Number> left = numbers_of<Number>(a);
  const std::vector<Number> right = numbers_of<Number>(b);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < left.size(); ++i)
    out.push_back(text(left[i] == right[i] ? Number{0} : left[i] - right[i]));  // of equal infinities too
  return out;
}

}  // namespace

std::vector<std::string> difference_texts(const ballast::Tensor& a, const ballast::Tensor& b) {
  if (!ballast::is_real(a.dtype()) || !ballast::is_real(b.dtype()))
    fail(ballast::Errc::bad_dtype, "difference", "of {} and {} is no number", ballast::info(a.dtype()).code,
         ballast::info(b.dtype()).code);
  if (!is_long_integer(a.dtype()) && !is_long_integer(b.dtype()))
    return differences_of<double>(a, b, short_text);
  if (is_integer(a.dtype()) && is_integer(b.dtype()))
    return differences_of<WideInteger>(a, b, [](WideInteger value) { return fmt::format("{}", value); });
  return differences_of<long double>(
      a, b, [](long double value) { return short_text(static_cast<double>(value)); });
}

}  // namespace tool::view
