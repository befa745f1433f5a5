// SPDX-License-Identifier: Apache-2.0
// expect: ballast: no dtype has values of this type
#include <ballast/tensor.h>

const char* text(const ballast::Tensor& t) {
  return t.span<char>().data();
}
