// SPDX-License-Identifier: Apache-2.0
// Elements from any strides into row-major order: the one place that walks strides.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/tensor.h"
#include "tensor/isa.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Elements [first, first + count) of `source` in row-major order, packed to `out`, on the calling thread.
/// Sub-byte elements: `out` gets whole bytes, so first * bits must be a multiple of 8; unused bits of the
/// last byte become 0.
void gather(const Tensor& source, std::uint64_t first, std::uint64_t count, std::byte* out);

/// All elements of `source`, row-major, on several threads; transposes are cache-blocked.
void copy_contiguous(const Tensor& source, std::byte* out);

/// The same with the kernels of one instruction set, which this machine must have: for tests and benchmarks.
void copy_contiguous_with(Isa isa, const Tensor& source, std::byte* out);

}  // namespace ballast

#pragma GCC visibility pop
