// SPDX-License-Identifier: Apache-2.0
// expect: ballast: this would change a view that nobody has
#include <ballast/tensor.h>

void write(ballast::Tensor& t, const ballast::Tensor& x) {
  t[0] = x;
}
