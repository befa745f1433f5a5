// SPDX-License-Identifier: Apache-2.0
// What a Pyramid holds, and the pass that fills it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/shared_progress.h"
#include "tensor/plane_data.h"

namespace ballast {

inline constexpr std::int64_t kPyramidSide = std::int64_t{1} << Pyramid::kLevel;
inline constexpr std::int64_t kMostLines = std::int64_t{1} << 22U;  // beyond, norms are sampled

struct PyramidBlock {
  float min;
  float max;
  float mean;
  std::uint32_t nan;
};

struct Pyramid::Data {
  Plane plane;
  std::shared_ptr<const Plane::Data> source;
  std::int64_t width = 0;  // blocks
  std::int64_t height = 0;
  std::vector<PyramidBlock> blocks = {};
  // Canonical rows and columns.
  std::vector<float> row_norm = {};
  std::vector<float> row_absmax = {};
  std::vector<float> col_norm = {};
  std::vector<float> col_absmax = {};

  [[nodiscard]] std::int64_t elements_in(std::int64_t y, std::int64_t x) const {
    const PlaneForm& form = source->form;
    const std::int64_t rows = std::min(kPyramidSide, form.rows - y * kPyramidSide);
    const std::int64_t cols = std::min(kPyramidSide, form.cols - x * kPyramidSide);
    const bool has_last = y == height - 1;
    return (has_last ? rows - 1 : rows) * cols +
           (has_last ? form.present(form.rows - 1, x * kPyramidSide, cols) : 0);
  }
};

/// Reads the plane, which has elements, and, when `summary` is given, the values of its tensor; in one
/// reading where the plane shows them all in their order.
void fill_pyramid(Pyramid::Data& data, const Progress& progress, Summary* summary);

}  // namespace ballast
