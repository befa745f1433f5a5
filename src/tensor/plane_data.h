// SPDX-License-Identifier: Apache-2.0
// What Plane and Pyramid share: the picture as it is best read, and cells that fold many elements into one.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ballast/stats.h"
#include "tensor/plane_source.h"

namespace ballast {

/// Columns lie closer together than rows; `swapped` says that users see it the other way round.
struct Plane::Data {
  PlaneForm form;
  bool swapped = false;
  PlaneSource a;
  std::optional<PlaneSource> b = {};
  Delta delta = Delta::difference;
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> at;
  std::optional<std::int64_t> fold;

  [[nodiscard]] bool needs_double() const { return b || plane_needs_double(a.tensor().dtype()); }

  /// What lies in that many elements, of both tensors.
  [[nodiscard]] std::uint64_t bytes_in(std::int64_t elements) const;
  [[nodiscard]] int readers() const;
};

/// Buffers of one thread.
template <class T>
struct PlaneScratch {
  std::vector<std::byte> raw;
  std::vector<std::byte> other_raw;
  std::vector<T> numbers;
  std::vector<T> others;
};

/// The numbers of a rectangle inside, row by row in scratch.numbers; what is not there (PlaneForm::present())
/// is not to be looked at.
template <class T>
const T* read_numbers(const Plane::Data& data, std::int64_t row, std::int64_t col, std::int64_t height,
                      std::int64_t width, PlaneScratch<T>& scratch);

/// What is known of the elements of a cell.
struct Cell {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  std::uint64_t numbers = 0;  // without NaN
  std::uint64_t nan = 0;

  template <class T>
  void add(const T* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(values[i]);
      if (value != value) {
        ++nan;
        continue;
      }
      min = value < min ? value : min;
      max = value > max ? value : max;
      sum += value;
      ++numbers;
    }
  }

  [[nodiscard]] double show(CellStat stat) const;
};

/// As a float, however large.
[[nodiscard]] float to_float_cell(double value) noexcept;

/// Cells in canonical order, row by row, as the tile that users see.
[[nodiscard]] Tile finished_tile(const std::vector<Cell>& cells, std::int64_t width, std::int64_t height,
                                 CellStat stat, bool swapped, bool exact);

/// Which cells a tile has, in canonical order.
struct TileFrame {
  int level;
  std::int64_t col;  // of the first cell, in cells
  std::int64_t row;
  std::int64_t width;  // cells; 0 outside the picture
  std::int64_t height;
};

/// Errc::invalid_argument for a level that is not there.
[[nodiscard]] TileFrame frame_of(const Plane::Data& data, int level, std::int64_t x, std::int64_t y);

/// From every element.
[[nodiscard]] Tile exact_tile(const Plane::Data& data, const TileFrame& frame, CellStat stat);

/// Numbers without order from 0, 1, 2, …: the same ones on every machine.
[[nodiscard]] std::uint64_t scrambled(std::uint64_t number) noexcept;

/// Of more than 4,096 the largest of each `step`.
[[nodiscard]] Lines thinned(const std::vector<float>& points, bool exact);

}  // namespace ballast
