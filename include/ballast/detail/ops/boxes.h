// SPDX-License-Identifier: Apache-2.0
// Boxes in images: [count, 4] with (x1, y1, x2, y2), as torchvision.ops has them.
//
// Gives: I64 for boxes that are chosen, else the dtype of the boxes (of x in roi_align()). Throws:
// Errc::shape_mismatch for boxes that are no floating [count, 4] (5 with the image) or do not belong to the
// scores, kinds or image; bad_dtype for kinds that are no integers; offset_out_of_range for a box of an image
// there is not; invalid_argument for one with a corner that is no number, and a `spatial_scale` or
// `sampling_ratio` out of range; size_overflow for one beyond all measure. nms() sorts, and compares every
// two boxes at worst.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// I64: the boxes that stay, the best score first, when each removes those after it that it overlaps by more
/// than `iou_threshold` (the area of both divided by the area of either). Of equal scores the first is the
/// better one. How many there are depends on values: in a trace it is a size of its own.
[[nodiscard]] Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold);
/// The same for boxes of several kinds, I64 [count]: one removes others of its own kind alone.
[[nodiscard]] Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& kinds,
                                 double iou_threshold);
/// [n, m]: the area of both divided by the area of either.
[[nodiscard]] Tensor box_iou(const Tensor& a, const Tensor& b);

/// torchvision's arguments, by their names.
struct RoiAlignArgs {
  Dims output_size = {1};    ///< one number for both dimensions, or one each
  double spatial_scale = 1;  ///< from the boxes' measure to x's
  std::int64_t sampling_ratio =
      -1;                ///< points in each direction of a bin; as many as it has pixels when not positive
  bool aligned = false;  ///< pixels are areas, half a pixel to the left of where they are otherwise
};

/// x [batch, channels, height, width] in boxes [count, 5], the image's number before the corners: [count,
/// channels, output_size…]. Each bin is the mean of points between pixels. A box of an image there is not, or
/// with a corner that is no number, is refused.
[[nodiscard]] Tensor roi_align(const Tensor& x, const Tensor& boxes, const RoiAlignArgs& args = {});
/// Boxes [count, 4] of each image.
[[nodiscard]] Tensor roi_align(const Tensor& x, const std::vector<Tensor>& boxes,
                               const RoiAlignArgs& args = {});

}  // namespace ballast

#pragma GCC visibility pop
