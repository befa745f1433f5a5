// SPDX-License-Identifier: Apache-2.0
// Images in the order the convolutions want. oneDNN is fastest when the channels lie innermost, so
// convolutions and what follows them keep their results that way, behind tensors that say they are row-major:
// the row-major bytes are made when somebody outside asks for them (a Storage that comes into being,
// docs/decisions/0002), and not at all when the next operation is one of ours.
#pragma once

#include "ballast/tensor.h"
#include "ops/bounds.h"

namespace ballast::ops {

/// How x lies in memory: itself, or a strided view of the channels-last bytes behind it.
[[nodiscard]] Tensor native_view(const Tensor& x);

/// A row-major tensor with the elements of `native`, a dense tensor of any order of dimensions that nobody
/// else writes to. None of them is larger than `bound` in magnitude.
[[nodiscard]] Tensor row_major(const Tensor& native, double bound = kUnbounded);

/// x's memory, as native_view() or blocks_of() gives it, when it came from new_tensor() and nothing but x
/// looks at it: then the result of the last operation that takes x may be written over it. Undefined when
/// not.
[[nodiscard]] Tensor last_use_of(const Tensor& x);

/// What is known of the largest magnitude in x, without looking: from how x was made.
[[nodiscard]] double bound_of(const Tensor& x);

/// New memory for `shape` [batch, channels, size…] with the channels innermost.
[[nodiscard]] Tensor new_channels_last(DType dtype, const Shape& shape);
/// True for that order of dimensions (and not for one that is row-major as well, unless `either`).
[[nodiscard]] bool is_channels_last(const Tensor& x, bool either = false);
/// Strides of that order.
[[nodiscard]] Strides channels_last_strides(const Shape& shape);
/// x in that order; a copy when it lies otherwise.
[[nodiscard]] Tensor to_channels_last(const Tensor& x);

// With AVX2 oneDNN's convolutions of images are faster still with the channels in blocks of 8
// (docs/decisions/0024): [batch, channels / 8, height, width, 8]. For whatever treats all channels alike that
// is a larger batch of images with 8 channels, channels last, and that is how blocks are handed around.

inline constexpr std::int64_t kBlock = 8;

/// True for [batch, channels, height, width] with whole blocks of channels.
[[nodiscard]] bool fits_blocks(const Shape& shape);
/// x's memory as [batch * blocks, 8, height, width] if it lies in blocks; undefined if not.
[[nodiscard]] Tensor blocks_of(const Tensor& x);
/// A row-major tensor of `shape` with the elements of such memory, which nobody else writes to, and their
/// bound.
[[nodiscard]] Tensor from_blocks(const Tensor& blocks, const Shape& shape, double bound = kUnbounded);
/// New memory for blocks of `shape`.
[[nodiscard]] Tensor new_blocks(const Shape& shape);
/// An F32 image's blocks; a copy when it lies otherwise.
[[nodiscard]] Tensor to_blocks(const Tensor& x);

}  // namespace ballast::ops
