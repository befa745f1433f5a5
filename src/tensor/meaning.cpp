// SPDX-License-Identifier: Apache-2.0
#include "tensor/meaning.h"

namespace ballast {

Meaning meaning_of(DType dtype) {
  switch (dtype) {
    case DType::c32:
      return {DType::f16, 2};
    case DType::c64:
      return {DType::f32, 2};
    case DType::c128:
      return {DType::f64, 2};
    case DType::qi8:
      return {DType::i8, 1};
    case DType::qu8:
      return {DType::u8, 1};
    case DType::qi32:
      return {DType::i32, 1};
    default:
      break;
  }
  if (is_real(dtype)) return {dtype, 1};
  return {DType::u8, 0};  // bytes
}

std::uint64_t values_in(const Tensor& tensor) {
  const Meaning meaning = meaning_of(tensor.dtype());
  if (meaning.per_element == 0) return tensor.size_bytes();
  return static_cast<std::uint64_t>(tensor.numel()) * meaning.per_element;
}

}  // namespace ballast
