// SPDX-License-Identifier: Apache-2.0
// What a plane shows before anybody has read all of it: from some rows, spread evenly, always the same ones.
#include <algorithm>

#include "base/thread_pool.h"
#include "tensor/plane_data.h"

namespace ballast {
namespace {

constexpr std::uint64_t kSmallPlane = std::uint64_t{16} << 20U;   // read whole
constexpr std::uint64_t kSampleBytes = std::uint64_t{32} << 20U;  // of a picture: a disk's 50 ms
constexpr std::int64_t kFewestRows = 16;
constexpr std::int64_t kSegment = 1024;  // elements, where whole rows are too long
constexpr std::int64_t kRowPart = 8192;  // elements that a row's norm is guessed from
constexpr std::int64_t kRowPieces = 4;   // in so many pieces: each costs a disk as much as what lies in it
constexpr std::int64_t kSampledLines = 256;
constexpr int kExactLevel = 3;

// One of [begin, end).
std::int64_t one_of(std::int64_t begin, std::int64_t end) {
  const auto choices = static_cast<std::uint64_t>(end - begin);
  return begin + static_cast<std::int64_t>(scrambled(static_cast<std::uint64_t>(begin)) % choices);
}

// Columns [col, col + width) of one row into cells, all of each, or a segment of each.
template <class T>
void sample_row(const Plane::Data& data, const TileFrame& frame, std::int64_t row, bool whole, Cell* cells) {
  PlaneScratch<T> scratch;
  const std::int64_t cell = std::int64_t{1} << frame.level;
  const std::int64_t col = frame.col << frame.level;
  const std::int64_t end = std::min((frame.col + frame.width) << frame.level, data.form.cols);
  const std::int64_t present = data.form.present(row, col, end - col);
  if (whole) {
    const T* numbers = read_numbers(data, row, col, 1, end - col, scratch);
    for (std::int64_t c = 0; c < present; c += cell)
      cells[c >> frame.level].add(numbers + c, std::min(cell, present - c));
    return;
  }
  for (std::int64_t c = 0; c < present; c += cell) {
    const std::int64_t length = std::min({kSegment, cell, present - c});
    const std::int64_t last = std::min(cell, present - c) - length;
    const std::int64_t from = col + c + (last > 0 ? one_of(row + c, row + c + last) - row - c : 0);
    cells[c >> frame.level].add(read_numbers(data, row, from, 1, length, scratch), length);
  }
}

template <class T>
Tile sampled_tile(const Plane::Data& data, const TileFrame& frame, CellStat stat) {
  const std::int64_t width = std::min(frame.width << frame.level, data.form.cols);
  const std::uint64_t row_bytes = data.bytes_in(width);
  const auto affordable = static_cast<std::int64_t>(kSampleBytes / std::max<std::uint64_t>(row_bytes, 1));
  const std::int64_t count = std::min(frame.height, std::max(kFewestRows, affordable));
  const bool whole = affordable >= count;
  std::vector<Cell> cells(static_cast<std::size_t>(frame.width * frame.height));
  parallel_read(static_cast<std::uint64_t>(count), data.readers(), [&](std::uint64_t i) {
    const auto n = static_cast<std::int64_t>(i);
    const std::int64_t first = frame.height * n / count;
    const std::int64_t last = frame.height * (n + 1) / count;
    const std::int64_t row = one_of((frame.row + first) << frame.level,
                                    std::min((frame.row + last) << frame.level, data.form.rows));
    const auto cells_at = [&](std::int64_t at) { return cells.begin() + at * frame.width; };
    sample_row<T>(data, frame, row, whole, &*cells_at(first));
    for (std::int64_t other = first + 1; other < last; ++other)
      std::copy(cells_at(first), cells_at(first + 1), cells_at(other));
  });
  return finished_tile(cells, frame.width, frame.height, stat, data.swapped, false);
}

struct Strength {
  double squares = 0;
  double absmax = 0;

  void add(double value) {
    if (value != value) return;
    squares += value * value;
    absmax = std::max(absmax, std::fabs(value));
  }

  [[nodiscard]] float show(LineStat of, double share) const {
    return to_float_cell(of == LineStat::norm ? std::sqrt(squares / share) : absmax);
  }
};

// One row in `step`.
Lines sampled_rows(const Plane::Data& data, LineStat of) {
  Lines lines;
  lines.exact = false;
  lines.step = (data.form.rows - 1) / kSampledLines + 1;
  const std::int64_t count = (data.form.rows - 1) / lines.step + 1;
  lines.points.resize(static_cast<std::size_t>(count));
  const std::int64_t pieces = data.form.cols <= kRowPart ? 1 : kRowPieces;
  const std::int64_t length = std::min(data.form.cols, kRowPart) / pieces;
  parallel_read(static_cast<std::uint64_t>(count), data.readers(), [&](std::uint64_t i) {
    PlaneScratch<double> scratch;
    const std::int64_t begin = static_cast<std::int64_t>(i) * lines.step;
    const std::int64_t row = one_of(begin, std::min(begin + lines.step, data.form.rows));
    Strength strength;
    std::int64_t seen = 0;
    for (std::int64_t p = 0; p < pieces; ++p) {
      const std::int64_t col = (data.form.cols - length) * p / std::max<std::int64_t>(pieces - 1, 1);
      const double* numbers = read_numbers(data, row, col, 1, length, scratch);
      const std::int64_t present = data.form.present(row, col, length);
      for (std::int64_t c = 0; c < present; ++c) strength.add(numbers[c]);
      seen += present;
    }
    const std::int64_t all = data.form.present(row, 0, data.form.cols);
    lines.points[i] =
        strength.show(of, static_cast<double>(seen) / static_cast<double>(std::max<std::int64_t>(all, 1)));
  });
  return lines;
}

// Every column, or the first kSegment of each of 256 parts where they are too many, of some rows.
Lines sampled_cols(const Plane::Data& data, LineStat of) {
  const PlaneForm& form = data.form;
  const bool whole = data.bytes_in(form.cols) <= kSampleBytes / 64;
  const std::int64_t rows = std::min<std::int64_t>(form.rows, whole ? 64 : kFewestRows);
  const std::int64_t parts = whole ? 1 : kSampledLines;
  const std::int64_t step = (form.cols - 1) / parts + 1;
  const std::int64_t length = whole ? form.cols : std::min(kSegment, step);
  std::vector<float> points(static_cast<std::size_t>(whole ? form.cols : (form.cols - 1) / step + 1));
  parallel_read(static_cast<std::uint64_t>((form.cols - 1) / step + 1), data.readers(),
                [&](std::uint64_t part) {
                  PlaneScratch<double> scratch;
                  const std::int64_t col = static_cast<std::int64_t>(part) * step;
                  const std::int64_t width = std::min(length, form.cols - col);
                  std::vector<Strength> strengths(static_cast<std::size_t>(width));
                  for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t row = one_of(form.rows * r / rows, form.rows * (r + 1) / rows);
                    const double* numbers = read_numbers(data, row, col, 1, width, scratch);
                    const std::int64_t present = form.present(row, col, width);
                    for (std::int64_t c = 0; c < present; ++c)
                      strengths[static_cast<std::size_t>(c)].add(numbers[c]);
                  }
                  const double share = static_cast<double>(rows) / static_cast<double>(form.rows);
                  for (std::size_t c = 0; c < strengths.size(); ++c) {
                    float& point = points[whole ? c : part];
                    point = std::max(point, strengths[c].show(of, share));
                  }
                });
  Lines lines = thinned(points, false);
  if (!whole) lines.step = step;
  return lines;
}

}  // namespace

std::uint64_t scrambled(std::uint64_t number) noexcept {  // splitmix64
  number += 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27U)) * 0x94D049BB133111EB;
  return number ^ (number >> 31U);
}

Lines thinned(const std::vector<float>& points, bool exact) {
  constexpr std::size_t kMost = 4096;
  const std::size_t step = points.empty() ? 1 : (points.size() - 1) / kMost + 1;
  Lines lines;
  lines.exact = exact;
  lines.step = static_cast<std::int64_t>(step);
  for (std::size_t i = 0; i < points.size(); i += step)
    lines.points.push_back(
        *std::max_element(points.begin() + static_cast<std::ptrdiff_t>(i),
                          points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), i + step))));
  return lines;
}

Tile Plane::tile(int level, std::int64_t x, std::int64_t y, CellStat stat) const {
  const TileFrame frame = frame_of(*data_, level, x, y);
  const std::int64_t shown =
      std::min(frame.width << level, data_->form.cols) * std::min(frame.height << level, data_->form.rows);
  if (level <= kExactLevel || data_->bytes_in(shown) <= kSmallPlane) return exact_tile(*data_, frame, stat);
  return data_->needs_double() ? sampled_tile<double>(*data_, frame, stat)
                               : sampled_tile<float>(*data_, frame, stat);
}

Lines Plane::lines(int axis, LineStat of) const {
  if (data_->bytes_in(data_->form.rows * data_->form.cols) <= kSmallPlane)
    return pyramid(*this).lines(axis, of);
  return (axis == 0) != data_->swapped ? sampled_rows(*data_, of) : sampled_cols(*data_, of);
}

}  // namespace ballast
