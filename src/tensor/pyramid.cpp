// SPDX-License-Identifier: Apache-2.0
#include "tensor/pyramid_data.h"

namespace ballast {
namespace {

Cell fold_blocks(const Pyramid::Data& data, int level, std::int64_t row, std::int64_t col) {
  const int up = level - Pyramid::kLevel;
  Cell cell;
  for (std::int64_t y = row << up; y < std::min((row + 1) << up, data.height); ++y) {
    for (std::int64_t x = col << up; x < std::min((col + 1) << up, data.width); ++x) {
      const PyramidBlock& block = data.blocks[static_cast<std::size_t>(y * data.width + x)];
      const std::uint64_t numbers = static_cast<std::uint64_t>(data.elements_in(y, x)) - block.nan;
      cell.nan += block.nan;
      if (numbers == 0) continue;
      cell.min = std::min(cell.min, static_cast<double>(block.min));
      cell.max = std::max(cell.max, static_cast<double>(block.max));
      cell.sum += static_cast<double>(block.mean) * static_cast<double>(numbers);
      cell.numbers += numbers;
    }
  }
  return cell;
}

}  // namespace

Tile Pyramid::tile(int level, std::int64_t x, std::int64_t y, CellStat stat) const {
  const TileFrame frame = frame_of(*data_->source, level, x, y);
  if (level < kLevel) return exact_tile(*data_->source, frame, stat);
  std::vector<Cell> cells;
  for (std::int64_t row = 0; row < frame.height; ++row) {
    for (std::int64_t col = 0; col < frame.width; ++col)
      cells.push_back(fold_blocks(*data_, level, frame.row + row, frame.col + col));
  }
  return finished_tile(cells, frame.width, frame.height, stat, data_->source->swapped, true);
}

Lines Pyramid::lines(int axis, LineStat of) const {
  const bool rows = (axis == 0) != data_->source->swapped;
  const bool kept = (rows ? data_->source->form.rows : data_->source->form.cols) <= kMostLines;
  if (!kept && !data_->blocks.empty()) return data_->plane.lines(axis, of);
  if (rows) return thinned(of == LineStat::norm ? data_->row_norm : data_->row_absmax, true);
  return thinned(of == LineStat::norm ? data_->col_norm : data_->col_absmax, true);
}

Pyramid pyramid(const Plane& plane, const Progress& progress, Summary* summary) {
  const Plane::Data& source = *plane.data_;
  auto data = std::make_shared<Pyramid::Data>(Pyramid::Data{plane, plane.data_});
  data->width = (source.form.cols + kPyramidSide - 1) / kPyramidSide;
  data->height = (source.form.rows + kPyramidSide - 1) / kPyramidSide;
  data->blocks.resize(static_cast<std::size_t>(data->width * data->height));
  if (data->blocks.empty()) {
    data->row_norm.resize(static_cast<std::size_t>(std::min(source.form.rows, kMostLines)));
    data->row_absmax = data->row_norm;
    data->col_norm.resize(static_cast<std::size_t>(std::min(source.form.cols, kMostLines)));
    data->col_absmax = data->col_norm;
    if (summary != nullptr) *summary = ballast::summary(source.a.tensor(), progress);
  } else {
    fill_pyramid(*data, progress, summary);
  }
  Pyramid result;
  result.data_ = std::move(data);
  return result;
}

}  // namespace ballast
