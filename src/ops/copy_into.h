// SPDX-License-Identifier: Apache-2.0
// Elements from one view into another of the same shape.
#pragma once

#include "ballast/tensor.h"

namespace ballast::ops {

/// The memory of `to` may be written, and has no element of `from` in it; dtypes are the same, of whole
/// bytes.
void copy_into(const Tensor& from, Tensor to);

/// Refuses dtypes of less than a byte.
void require_movable(const char* op, const Tensor& x);

/// Calls work with a value of the unsigned integer type of the dtype's size, or two words for 16 bytes.
struct Bytes16 {
  std::uint64_t words[2];
};

template <class Work>
void with_element_type(DType dtype, const Work& work) {
  switch (info(dtype).bits / 8) {
    case 1:
      return work(std::uint8_t{});
    case 2:
      return work(std::uint16_t{});
    case 4:
      return work(std::uint32_t{});
    case 8:
      return work(std::uint64_t{});
    default:
      return work(Bytes16{});
  }
}

}  // namespace ballast::ops
