// SPDX-License-Identifier: Apache-2.0
// Copies a two-dimensional plane with its two dimensions exchanged: columns of the source are rows of the
// output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/isa.h"

namespace ballast {

/// Output row i, column j is the source's element at in + i * row_step + j * column_step; all steps in bytes.
/// Rows of the output begin `pitch` bytes apart.
struct StridedRows {
  const std::byte* in;
  std::int64_t row_step;
  std::int64_t column_step;
  std::byte* out;
  std::int64_t pitch;
  std::int64_t rows;
  std::int64_t columns;
};

/// Copies it tile by tile, so that every cache line of both sides is fetched once. Elements of 1, 2, 4, 8 or
/// 16 bytes; nothing needs to be aligned. `stream`: write past the cache where whole lines can be written.
void copy_plane(const StridedRows& plane, std::size_t size, Isa isa, bool stream);

/// Transposes blocks of 16 bytes of source elements across and a cache line of output elements down: row_step
/// is `size`, rows and columns are multiples of the block's. Streaming needs output rows that begin on a
/// cache line.
using TransposeKernel = void (*)(const StridedRows& plane, bool stream);

/// Null where there is none for this machine.
[[nodiscard]] TransposeKernel avx2_transposer(std::size_t size) noexcept;
[[nodiscard]] TransposeKernel avx512_transposer(std::size_t size) noexcept;

}  // namespace ballast
