// SPDX-License-Identifier: Apache-2.0
// Other sizes for x [batch, channels, size…], as torch.nn.functional.interpolate computes them.
//
// Gives: x's dtype and number of dimensions, the spatial ones as asked for. Throws: Errc::shape_mismatch for
// an x, grid or theta of another number of dimensions, factors that do not fit, and sizes that leave nothing;
// bad_dtype for integers, F64 in resize(), and a grid of another dtype; invalid_argument unless there is
// either a size or a scale, and for align_corners of nearest; unsupported for cubic of a grid with a depth.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What resize() puts between pixels.
enum class ResizeMode : std::uint8_t { nearest, linear, cubic };

struct ResizeArgs {
  Dims size = {};                  ///< one for each spatial dimension; or
  std::vector<double> scale = {};  ///< one factor for all, or one each
  ResizeMode mode =
      ResizeMode::nearest;  ///< linear: (bi-, tri-)linear by the number of dimensions; cubic: two only
  bool align_corners = false;
};

[[nodiscard]] Tensor resize(const Tensor& x, const ResizeArgs& args);

/// What grid_sample() puts between pixels.
enum class GridMode : std::uint8_t { linear, nearest, cubic };
/// What lies outside x: zeros, the border's value, or x mirrored.
enum class GridPadding : std::uint8_t { zeros, border, reflection };

/// PyTorch's mode, padding_mode and align_corners.
struct GridSampleArgs {
  GridMode mode = GridMode::linear;          ///< cubic: images only
  GridPadding padding = GridPadding::zeros;  ///< what lies outside
  bool align_corners = false;  ///< -1 and 1 are the middles of the outermost pixels, not their edges
};

/// x [batch, channels, height, width] at the places of a grid [batch, h, w, 2], whose (x, y) are -1 at the
/// left and top edge and 1 at the right and bottom one; or the same with a depth and (x, y, z).
[[nodiscard]] Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleArgs& args = {});
/// The grid of an affine map, theta [batch, 2, 3] (or [batch, 3, 4]), for results of `size` [batch, channels,
/// height, width] (or with a depth).
[[nodiscard]] Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

}  // namespace ballast

#pragma GCC visibility pop
