// SPDX-License-Identifier: Apache-2.0
// Arithmetic whose result is written over its left side.
#include "ballast/detail/ops/elementwise.h"
#include "ballast/error.h"
#include "ops/args.h"
#include "ops/copy_into.h"
#include "ops/elementwise.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

// BOOL, integers, floating: PyTorch lets a result go up in this order, never down.
int rank_of_kind(DType dtype) {
  if (dtype == DType::boolean) return 0;
  return is_floating(dtype) ? 2 : 1;
}

void require_writable_as(const char* op, const Tensor& a, const Tensor& result) {
  if (!(result.shape() == a.shape()))
    fail(Errc::shape_mismatch, op, "the result is {}, which {} cannot hold in place", ops::form(result),
         ops::form(a));
  if (rank_of_kind(result.dtype()) > rank_of_kind(a.dtype()))
    fail(Errc::bad_dtype, op, "the result is {}, which {} cannot hold in place; use to() first",
         ops::form(result), ops::form(a));
  for (std::size_t i = 0; i < a.rank(); ++i) {
    if (a.shape()[i] > 1 && a.strides()[i] == 0)
      fail(Errc::overlap, op,
           "{} has the same element at several positions of dimension {}; clone() it first", ops::form(a), i);
  }
}

void require_value(const Tensor& number, const Tensor& to) {
  if (is_floating(to.dtype()) || is_floating(number.dtype())) return;
  const Tensor held = ops::narrowed(number.to(DType::i64), to.dtype()).to(DType::i64);
  if (held.item<std::int64_t>() != number.item<std::int64_t>())
    fail(Errc::not_representable, "assign", "{} does not have the number {}", info(to.dtype()).code,
         number.item<std::int64_t>());
}

// As PyTorch's integers: the upper bits are dropped.
Tensor in_dtype(const Tensor& result, DType dtype) {
  if (is_floating(dtype) || is_floating(result.dtype())) return result.to(dtype);
  return ops::narrowed(result.to(DType::i64).contiguous(), dtype);
}

template <class Compute>
Tensor& in_place(const char* op, Tensor& a, const Compute& compute) {
  // A trace records what results are made of, not what was written where: only what is known may be written.
  const bool traced = tracing::on();
  const tracing::Aside aside;
  try {
    const Tensor result = compute();
    require_writable_as(op, a, result);
    ops::copy_into(in_dtype(result, a.dtype()), a);
  } catch (const Error& error) {
    if (!traced || error.code() != Errc::traced_value) throw;
    fail(
        Errc::traced_value, op,
        "writes in place, which a trace cannot follow where values depend on the model's inputs: write x = x "
        "+ y for x += y");
  }
  return a;
}

}  // namespace

Tensor& operator+=(Tensor& a, const Operand& b) {
  return in_place("add in place", a, [&] { return add(a, b); });
}

Tensor& operator-=(Tensor& a, const Operand& b) {
  return in_place("sub in place", a, [&] { return sub(a, b); });
}

Tensor& operator*=(Tensor& a, const Operand& b) {
  return in_place("mul in place", a, [&] { return mul(a, b); });
}

Tensor& operator/=(Tensor& a, const Operand& b) {
  return in_place("div in place", a, [&] { return div(a, b); });
}

void assign(Tensor to, const Operand& values) {
  in_place("assign", to, [&] {
    const Tensor& given = values.tensor();
    if (values.is_number()) require_value(given, to);
    // What is read while it is written would be read changed.
    return (given.storage() == to.storage() ? given.clone() : given).expand(to.shape());
  });
}

}  // namespace ballast
