// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ballast/detail/ops/elementwise.h"

namespace ballast {

Tensor operator+(Operand a, Operand b) {
  return add(std::move(a), std::move(b));
}

Tensor operator-(const Operand& a, const Operand& b) {
  return sub(a, b);
}

Tensor operator*(const Operand& a, const Operand& b) {
  return mul(a, b);
}

Tensor operator/(const Operand& a, const Operand& b) {
  return div(a, b);
}

Tensor operator+=(Tensor&& a, const Operand& b) {
  return a += b;
}

Tensor operator-=(Tensor&& a, const Operand& b) {
  return a -= b;
}

Tensor operator*=(Tensor&& a, const Operand& b) {
  return a *= b;
}

Tensor operator/=(Tensor&& a, const Operand& b) {
  return a /= b;
}

Tensor operator-(const Tensor& x) {
  return neg(x);
}

Tensor operator==(const Operand& a, const Operand& b) {
  return eq(a, b);
}

Tensor operator!=(const Operand& a, const Operand& b) {
  return ne(a, b);
}

Tensor operator<(const Operand& a, const Operand& b) {
  return lt(a, b);
}

Tensor operator<=(const Operand& a, const Operand& b) {
  return le(a, b);
}

Tensor operator>(const Operand& a, const Operand& b) {
  return gt(a, b);
}

Tensor operator>=(const Operand& a, const Operand& b) {
  return ge(a, b);
}

}  // namespace ballast
