// SPDX-License-Identifier: Apache-2.0
// Values from one real dtype to another. Every result is the exact source value rounded once:
//
// | to                        | rounding     | too large          | infinity           | NaN               |
// |---------------------------|--------------|--------------------|--------------------|-------------------|
// | F64 F32 F16 BF16 F8_E5M2  | nearest even | infinity           | infinity           | NaN               |
// | F8_E4M3 F8_*_FNUZ         | nearest even | NaN                | NaN                | NaN               |
// | F6_E2M3 F6_E3M2 F4        | nearest even | largest, same sign | largest, same sign | largest, positive |
// | F8_E8M0 (sign is dropped) | nearest, up  | NaN                | NaN                | NaN               |
// | I8..I64 U8..U64           | towards zero | nearest that fits  | nearest that fits  | 0                 |
// | BOOL                      | nonzero is 1 | 1                  | 1                  | 1                 |
//
// "Too large" is decided after rounding: 65519 is still 65504 in F16. F8 rules are PyTorch's before 2.15,
// which makes 448 of what is too large for F8_E4M3, and of infinity, where NaN is counted here. A negative
// zero becomes the plain zero in the FNUZ formats, which have no other. F8_E8M0: zero becomes 2^-127, and
// what lies between 2^-127 and 2^-126 becomes 2^-126 (PyTorch's reading of f32 denormals). F4 and F6 saturate
// as OCP MX asks; it leaves NaN open, the choice is that of the GPUs' conversion instructions. Of a NaN only
// its being one is promised, not its payload. BOOL is read as 1 for every byte that is not 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/dtype.h"
#include "tensor/isa.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Converts `count` packed elements, on several threads when they are many. Both dtypes must be real
/// (is_real); neither buffer needs to be aligned; the two must not overlap. Sub-byte elements begin at bit 0
/// of their buffer; unused bits of the last byte become 0.
void cast_elements(DType from, const std::byte* in, DType to, std::byte* out, std::uint64_t count);

/// The same with the kernels of one instruction set, which this machine must have: for tests and benchmarks.
void cast_elements_with(Isa isa, DType from, const std::byte* in, DType to, std::byte* out,
                        std::uint64_t count);

}  // namespace ballast

#pragma GCC visibility pop
