// SPDX-License-Identifier: Apache-2.0
// Single values, in and out.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "ballast/tensor.h"
#include "base/checked.h"
#include "tensor/describe.h"
#include "tensor/half.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

// The one element of `tensor` as a Value of dtype_of<Value>; copied, since a file need not align it.
template <class Value>
Value only_element(const Tensor& tensor) {
  Value value{};
  tensor.to(dtype_of<Value>).read(0, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

bool is_integer(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer;
}

// Every digit of it: an I64 may be more than a double has.
std::string text_of(const Tensor& value) {
  if (is_floating(value.dtype())) return fmt::format("{}", only_element<double>(value));
  return info(value.dtype()).kind == DTypeKind::unsigned_integer
             ? fmt::format("{}", only_element<std::uint64_t>(value))
             : fmt::format("{}", only_element<std::int64_t>(value));
}

// True when `dtype`, an integer's, has the value with its fraction cut off.
bool integer_holds(DType dtype, const Tensor& value) {
  const int bits = info(dtype).bits;
  const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
  if (is_floating(value.dtype())) {
    const double whole = std::trunc(only_element<double>(value));
    return whole >= (is_signed ? -std::ldexp(1.0, bits - 1) : 0.0) &&
           whole < std::ldexp(1.0, is_signed ? bits - 1 : bits);  // not so of NaN
  }
  const auto whole = info(value.dtype()).kind == DTypeKind::unsigned_integer
                         ? static_cast<Int128>(only_element<std::uint64_t>(value))
                         : static_cast<Int128>(only_element<std::int64_t>(value));
  const Int128 end = static_cast<Int128>(1) << (is_signed ? bits - 1 : bits);
  return whole >= (is_signed ? -end : 0) && whole < end;
}

}  // namespace

Half Half::from(float value) noexcept {
  return half_of(value);
}

Half::operator float() const noexcept {
  return float_of(*this);
}

BFloat16 BFloat16::from(float value) noexcept {
  return bfloat16_of(value);
}

BFloat16::operator float() const noexcept {
  return float_of(*this);
}

Tensor Tensor::from(const std::vector<bool>& values, Shape shape) {
  const auto bytes = std::make_unique<bool[]>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) bytes[i] = values[i];
  return from(std::span<const bool>(bytes.get(), values.size()), std::move(shape));
}

void Tensor::read_item(DType dtype, std::span<std::byte> out) const {
  if (numel_ != 1)
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "has {} elements, item() wants one", numel_);
  if (tracing::on()) static_cast<void>(data());  // refused for a traced value
  const tracing::Aside aside;                    // a number for the host is no part of the graph
  const Tensor converted = to(dtype);
  converted.read(0, out);
  if (dtype == DType::boolean) out[0] = std::byte{out[0] != std::byte{0}};  // a file may hold any byte
  if (dtype == dtype_) return;
  const bool held = is_integer(dtype)    ? integer_holds(dtype, *this)
                    : is_floating(dtype) ? std::isfinite(only_element<double>(converted)) ||
                                               !std::isfinite(only_element<double>(*this))
                                         : true;
  if (!held)
    fail(Errc::not_representable, describe(dtype_, shape_), "holds {}, which {} does not have",
         text_of(*this), info(dtype).code);
}

double Tensor::item() const {
  return item<double>();
}

}  // namespace ballast
