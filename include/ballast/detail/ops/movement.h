// SPDX-License-Identifier: Apache-2.0
// Elements moved, not changed: every dtype of whole bytes. Views where views are enough (split, chunk,
// expand), copies otherwise.
//
// Views are valid without x, whose storage they keep. Gives: x's dtype (places and one_hot() I64), in the
// shape that each function says. Throws: Errc::bad_dtype for elements of less than a byte, operands of two
// dtypes that become one, indices that are no integers and masks that are not BOOL; shape_mismatch for
// dimensions that are not there, and sizes that do not fit; offset_out_of_range for an index outside its
// dimension; invalid_argument for no operands, a dimension named twice, and counts below 0 (1 where there
// must be some); size_overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

[[nodiscard]] Tensor concat(std::span<const Tensor> tensors, std::int64_t dim = 0);

[[nodiscard]] inline Tensor concat(std::initializer_list<Tensor> tensors, std::int64_t dim = 0) {
  return concat(std::span(tensors.begin(), tensors.size()), dim);
}

[[nodiscard]] Tensor stack(std::span<const Tensor> tensors, std::int64_t dim = 0);

[[nodiscard]] inline Tensor stack(std::initializer_list<Tensor> tensors, std::int64_t dim = 0) {
  return stack(std::span(tensors.begin(), tensors.size()), dim);
}

/// Views of `size` each, the last one perhaps shorter.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
/// Views of these sizes, which must add up.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, const Dims& sizes, std::int64_t dim = 0);
/// At most `count` views of equal size, the last one perhaps shorter.
[[nodiscard]] std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, std::int64_t dim = 0);

/// The views along a dimension, without it.
[[nodiscard]] std::vector<Tensor> unbind(const Tensor& x, std::int64_t dim = 0);
/// The grids of lists (or numbers), all of one shape: torch.meshgrid with indexing "ij". With `xy` the first
/// two dimensions are exchanged.
[[nodiscard]] std::vector<Tensor> meshgrid(std::span<const Tensor> lists, bool xy = false);
/// Of a matrix its diagonal, of a list the matrix with it; `diagonal` counts upwards.
[[nodiscard]] Tensor diag(const Tensor& x, std::int64_t diagonal = 0);

/// Dimensions from `start` to `end` made one, as nn.Flatten does.
[[nodiscard]] Tensor flatten(const Tensor& x, std::int64_t start = 1, std::int64_t end = -1);

/// Dimension `dim` made several, one of them perhaps -1.
[[nodiscard]] Tensor unflatten(const Tensor& x, std::int64_t dim, const Dims& sizes);

/// What pad() puts at the edges.
enum class PadMode : std::uint8_t { constant, reflect, replicate, circular };
/// PyTorch's order: {left, right} of the last dimension, then of the one before it, … Negative amounts cut
/// (constant mode).
[[nodiscard]] Tensor pad(const Tensor& x, const Dims& amounts, PadMode mode = PadMode::constant,
                         double value = 0);

/// out[i][j] = x[index[i][j]][j] along dimension 0, and so on. `index` is I64 and nowhere larger than x
/// except in `dim`.
[[nodiscard]] Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index);
/// A copy of x with out[index[i][j]][j] = source[i][j]; of several writes to one place the last in row-major
/// order stays.
[[nodiscard]] Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index, const Operand& source);
/// A copy of x with out[index[i][j]][j] += source[i][j]. F16 and BF16 are summed in F32.
[[nodiscard]] Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                                 const Tensor& source);
/// A copy of x with slice j of `source` added to slice index[j] of `dim`.
[[nodiscard]] Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source);
/// I64 [count, rank]: the places of what is not zero, in row-major order. How many there are depends on the
/// values: in a trace it is a size of its own, which shapes may follow.
[[nodiscard]] Tensor nonzero(const Tensor& x);
/// The elements where the mask (BOOL) holds, in row-major order; both are broadcast.
[[nodiscard]] Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The slices of `dim` with these numbers (a list of I64 or I32).
[[nodiscard]] Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// Rows of weight [count, features] by their numbers: [...] → [..., features].
[[nodiscard]] Tensor embedding(const Tensor& index, const Tensor& weight);

[[nodiscard]] Tensor flip(const Tensor& x, const Dims& dims);
/// Elements pushed beyond the end come in again at the beginning. Without dims, in row-major order.
[[nodiscard]] Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});
/// Zero above (below) the diagonal of the last two dimensions.
[[nodiscard]] Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
[[nodiscard]] Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// x laid side by side, `repeats` times in each dimension, as Tensor.repeat in PyTorch.
[[nodiscard]] Tensor repeat(const Tensor& x, const Dims& repeats);
[[nodiscard]] Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::int64_t dim);

/// [..., c * r * r, h, w] → [..., c, h * r, w * r], and back.
[[nodiscard]] Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
[[nodiscard]] Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);
/// Channels (dimension 1) of `groups` groups taken in turn.
[[nodiscard]] Tensor channel_shuffle(const Tensor& x, std::int64_t groups);

/// One number for both dimensions of an image, or one each.
struct UnfoldArgs {
  Dims dilation = {1};
  Dims padding = {0};
  Dims stride = {1};
};

/// What a kernel sees at each of its places: [batch, channels, height, width] → [batch, channels * kernel,
/// places].
[[nodiscard]] Tensor unfold(const Tensor& x, const Dims& kernel, const UnfoldArgs& args = {});
/// The way back to an image of this size; where places overlap, sums.
[[nodiscard]] Tensor fold(const Tensor& x, const Dims& output, const Dims& kernel,
                          const UnfoldArgs& args = {});

/// What embedding_bag() makes of a bag.
enum class BagMode : std::uint8_t { sum, mean, max };

struct EmbeddingBagArgs {
  Tensor offsets = {};  ///< of a list of indices: where each bag begins. Their values are read
  BagMode mode = BagMode::mean;
  Tensor per_sample_weights = {};  ///< with sum: a factor for each index
  bool include_last_offset = false;
  std::optional<std::int64_t> padding_idx = {};  ///< of no bag
};

/// Rows of weight [count, features] summed (averaged, …) in bags: [bags, n] (or a list and offsets) → [bags,
/// features]. An empty bag is 0.
[[nodiscard]] Tensor embedding_bag(const Tensor& index, const Tensor& weight,
                                   const EmbeddingBagArgs& args = {});
/// I64 [...] → I64 [..., classes]; classes = largest + 1 when -1.
[[nodiscard]] Tensor one_hot(const Tensor& index, std::int64_t classes = -1);

}  // namespace ballast

#pragma GCC visibility pop
