// SPDX-License-Identifier: Apache-2.0
// The kernels of a dtype other than F32.
#pragma once

#include "ballast/dtype.h"
#include "ops/kernels.h"

namespace ballast::ops {

/// work(the NumberKernels of `dtype`): BOOL, U8, I8, I16, I32, I64 or F64.
template <class Work>
auto with_numbers(DType dtype, const Work& work) {
  const Kernels& all = kernels();
  switch (dtype) {
    case DType::boolean:
      return work(all.boolean);
    case DType::u8:
      return work(all.u8);
    case DType::i8:
      return work(all.i8);
    case DType::i16:
      return work(all.i16);
    case DType::i32:
      return work(all.i32);
    case DType::i64:
      return work(all.i64);
    default:
      return work(all.f64);
  }
}

}  // namespace ballast::ops
