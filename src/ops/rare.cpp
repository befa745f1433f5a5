// SPDX-License-Identifier: Apache-2.0
// Elementwise operations that models ask for seldom and of few values: computed in F64 or I64, one by one.
#include <cmath>

#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/elementwise.h"
#include "ops/operations.h"

namespace ballast {
namespace {

// The operands, broadcast, with the values they have in the result's dtype.
struct RarePair {
  RarePair(const char* op, const Operand& a, const Operand& b, DType result)
      : dtype(result), shape(ops::broadcast(op, a.tensor().shape(), b.tensor().shape())) {
    const DType near = ops::compute_dtype(dtype);
    const DType wide = near == DType::i64 ? DType::i64 : DType::f64;
    x = ops::dense(a.tensor().to(near).to(wide).expand(shape));
    y = ops::dense(b.tensor().to(near).to(wide).expand(shape));
  }

  template <class T, class Function>
  [[nodiscard]] Tensor by(const Function& function) const {
    Tensor out = ops::new_tensor(x.dtype(), shape);
    const auto a = x.span<T>();
    const auto b = y.span<T>();
    auto* to = reinterpret_cast<T*>(out.mutable_data());
    for (std::size_t i = 0; i < a.size(); ++i) to[i] = function(a[i], b[i]);
    return out;
  }

  DType dtype;
  Shape shape;
  Tensor x;
  Tensor y;
};

double remainder_value(double a, double b) {
  const double left = std::fmod(a, b);
  return left != 0 && (b < 0) != (left < 0) ? left + b : left;
}

std::int64_t remainder_value(std::int64_t a, std::int64_t b) {
  if (b == 0) fail(Errc::invalid_argument, "remainder", "an integer divided by 0");
  if (b == -1) return 0;  // the smallest number has no quotient
  const std::int64_t left = a % b;
  return left != 0 && (b < 0) != (left < 0) ? left + b : left;
}

Tensor remainder_cpu(const Operation& op, const Operand& a, const Operand& b) {
  const DType dtype = ops::promoted(op.name, a, b);
  if (dtype == DType::boolean) fail(Errc::bad_dtype, op.name, "of BOOL there is none");
  const RarePair pair(op.name, a, b, dtype);
  if (pair.x.dtype() == DType::i64)
    return ops::narrowed(
        pair.by<std::int64_t>([](std::int64_t p, std::int64_t q) { return remainder_value(p, q); }), dtype);
  return pair.by<double>([](double p, double q) { return remainder_value(p, q); }).to(dtype);
}

Tensor atan2_cpu(const Operation& op, const Operand& a, const Operand& b) {
  const DType promoted = ops::promoted(op.name, a, b);
  const DType dtype = is_floating(promoted) ? promoted : DType::f32;
  return RarePair(op.name, a, b, dtype)
      .by<double>([](double y, double x) { return std::atan2(y, x); })
      .to(dtype);
}

Tensor log2_cpu(const Operation& op, const Tensor& x) {
  ops::require_computable(op.name, x);
  const Tensor in = ops::dense(x.to(DType::f64));
  Tensor out = ops::new_tensor(DType::f64, x.shape());
  const auto from = in.span<double>();
  auto* to = reinterpret_cast<double*>(out.mutable_data());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::log2(from[i]);
  return out.to(is_floating(x.dtype()) ? x.dtype() : DType::f32);
}

}  // namespace

namespace operations {

constinit const Arithmetic remainder = {about("remainder", {"a", "b"}, {}, forms::arithmetic),
                                        {remainder_cpu}};
constinit const Arithmetic atan2 = {about("atan2", {"y", "x"}, {}, forms::quotient), {atan2_cpu}};
constinit const Function log2 = {about("log2", {"x"}, {}, forms::function), {log2_cpu}};

}  // namespace operations

Tensor remainder(const Operand& a, const Operand& b) {
  return run(operations::remainder, a, b);
}

Tensor atan2(const Operand& y, const Operand& x) {
  return run(operations::atan2, y, x);
}

Tensor log2(const Tensor& x) {
  return run(operations::log2, x);
}

}  // namespace ballast
