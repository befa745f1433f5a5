// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <mutex>

#include "base/shared_progress.h"
#include "base/thread_pool.h"
#include "tensor/plane_data.h"

namespace ballast {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << Pyramid::kLevel;
constexpr std::int64_t kWidth = std::int64_t{1} << 16U;      // columns one thread takes at a time
constexpr std::int64_t kAtOnce = std::int64_t{1} << 18U;     // elements
constexpr std::int64_t kMostLines = std::int64_t{1} << 22U;  // beyond, norms are sampled

struct Block {
  float min;
  float max;
  float mean;
  std::uint32_t nan;
};

}  // namespace

struct Pyramid::Data {
  Plane plane;
  std::shared_ptr<const Plane::Data> source;
  std::int64_t width = 0;  // blocks
  std::int64_t height = 0;
  std::vector<Block> blocks = {};
  // Canonical rows and columns.
  std::vector<float> row_norm = {};
  std::vector<float> row_absmax = {};
  std::vector<float> col_norm = {};
  std::vector<float> col_absmax = {};

  [[nodiscard]] std::int64_t elements_in(std::int64_t y, std::int64_t x) const {
    const PlaneForm& form = source->form;
    const std::int64_t rows = std::min(kBlock, form.rows - y * kBlock);
    const std::int64_t cols = std::min(kBlock, form.cols - x * kBlock);
    const bool has_last = y == height - 1;
    return (has_last ? rows - 1 : rows) * cols +
           (has_last ? form.present(form.rows - 1, x * kBlock, cols) : 0);
  }
};

namespace {

// What one thread knows of some columns: of the band of 64 rows it is at, and of all its rows.
template <class T>
struct Columns {
  std::vector<T> min;
  std::vector<T> max;
  std::vector<double> sum;
  std::vector<std::uint32_t> nan;
  std::vector<double> squares;  // all rows
  std::vector<double> absmax;

  explicit Columns(std::size_t width) : squares(width, 0.0), absmax(width, 0.0) { begin_band(width); }

  void begin_band(std::size_t width) {
    min.assign(width, std::numeric_limits<T>::infinity());
    max.assign(width, -std::numeric_limits<T>::infinity());
    sum.assign(width, 0.0);
    nan.assign(width, 0U);
  }
};

template <class T>
void fold_row(const T* values, std::size_t count, std::size_t from, Columns<T>& columns, double& squares,
              double& absmax) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::array<T, kLanes> most{};
  T* const min = columns.min.data() + from;
  T* const max = columns.max.data() + from;
  double* const sum = columns.sum.data() + from;
  std::uint32_t* const nan = columns.nan.data() + from;
  double* const all = columns.squares.data() + from;
  const auto look = [&](std::size_t c, std::size_t lane) {
    const T value = values[c];
    const bool is_nan = value != value;
    min[c] = value < min[c] ? value : min[c];
    max[c] = value > max[c] ? value : max[c];
    const double number = is_nan ? 0.0 : static_cast<double>(value);
    sum[c] += number;
    nan[c] += is_nan ? 1U : 0U;
    all[c] += number * number;
    sums[lane] += number * number;
    const T size = std::fabs(value);
    most[lane] = size > most[lane] ? size : most[lane];
  };
  std::size_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) look(c + lane, lane);
  }
  for (; c < count; ++c) look(c, 0);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    squares += sums[lane];
    absmax = std::max(absmax, static_cast<double>(most[lane]));
  }
}

template <class T>
class Builder {
 public:
  Builder(Pyramid::Data& out, const Progress& progress, std::uint64_t total)
      : out_(out),
        source_(*out.source),
        form_(out.source->form),
        chunks_((form_.cols - 1) / kWidth + 1),
        progress_(progress, total),
        keeps_rows_(form_.rows <= kMostLines),
        keeps_cols_(form_.cols <= kMostLines) {
    if (keeps_rows_) {
      row_squares_.resize(static_cast<std::size_t>(form_.rows * chunks_));
      row_absmax_.resize(row_squares_.size());
    }
    if (keeps_cols_) {
      col_squares_.resize(static_cast<std::size_t>(form_.cols));
      col_absmax_.resize(col_squares_.size());
    }
  }

  void run() {
    const std::int64_t width = std::min(kWidth, form_.cols);
    // Narrow pictures: many bands at once.
    const std::int64_t bands = std::max<std::int64_t>(1, kAtOnce / (width * kBlock));
    unit_rows_ = bands * kBlock;
    units_ = (form_.rows - 1) / unit_rows_ + 1;
    parallel_for(static_cast<std::uint64_t>(units_ * chunks_), 1,
                 [&](std::uint64_t begin, std::uint64_t end) {
                   work(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
                 });
    finish_lines();
  }

 private:
  // Neighbouring units have the same columns.
  void work(std::int64_t begin, std::int64_t end) {
    PlaneScratch<T> scratch;
    while (begin < end) {
      const std::int64_t chunk = begin / units_;
      const std::int64_t last = std::min(end, (chunk + 1) * units_);
      const std::int64_t col = chunk * kWidth;
      const std::int64_t width = std::min(kWidth, form_.cols - col);
      Columns<T> columns(static_cast<std::size_t>(width));
      for (; begin < last; ++begin) {
        const std::int64_t row = (begin - chunk * units_) * unit_rows_;
        fold_rows(row, std::min(form_.rows, row + unit_rows_), col, width, columns, scratch);
      }
      if (keeps_cols_) add_columns(columns, static_cast<std::size_t>(col));
    }
  }

  void fold_rows(std::int64_t row, std::int64_t end, std::int64_t col, std::int64_t width,
                 Columns<T>& columns, PlaneScratch<T>& scratch) {
    const std::int64_t at_once = std::max<std::int64_t>(1, kAtOnce / width);
    for (std::int64_t r = row; r < end;) {
      const std::int64_t height = std::min(at_once, end - r);
      const T* values = read_numbers(source_, r, col, height, width, scratch);
      progress_.add(source_.bytes_in(height * width));
      for (std::int64_t i = 0; i < height; ++i, ++r) {
        const std::int64_t present = form_.present(r, col, width);
        double squares = 0;
        double absmax = 0;
        fold_row(values + i * width, static_cast<std::size_t>(present), 0, columns, squares, absmax);
        if (keeps_rows_) {
          const auto place = static_cast<std::size_t>(col / kWidth * form_.rows + r);
          row_squares_[place] = squares;
          row_absmax_[place] = absmax;
        }
        if (r % kBlock == kBlock - 1 || r == form_.rows - 1) end_band(r / kBlock, col, width, columns);
      }
    }
  }

  void end_band(std::int64_t band, std::int64_t col, std::int64_t width, Columns<T>& columns) {
    for (std::int64_t from = 0; from < width; from += kBlock) {
      Cell cell;
      const std::int64_t x = (col + from) / kBlock;
      for (auto c = static_cast<std::size_t>(from);
           c < static_cast<std::size_t>(std::min(width, from + kBlock)); ++c) {
        cell.min = std::min(cell.min, static_cast<double>(columns.min[c]));
        cell.max = std::max(cell.max, static_cast<double>(columns.max[c]));
        cell.sum += columns.sum[c];
        cell.nan += columns.nan[c];
        // Nothing but NaN so far: -inf.
        columns.absmax[c] =
            std::max(columns.absmax[c], static_cast<double>(std::max(-columns.min[c], columns.max[c])));
      }
      const auto numbers = static_cast<double>(out_.elements_in(band, x)) - static_cast<double>(cell.nan);
      out_.blocks[static_cast<std::size_t>(band * out_.width + x)] = {
          to_float_cell(cell.min), to_float_cell(cell.max),
          to_float_cell(numbers > 0 ? cell.sum / numbers : 0.0), static_cast<std::uint32_t>(cell.nan)};
    }
    columns.begin_band(static_cast<std::size_t>(width));
  }

  void add_columns(const Columns<T>& columns, std::size_t col) {
    const std::lock_guard lock(mutex_);
    for (std::size_t c = 0; c < columns.squares.size(); ++c) {
      col_squares_[col + c] += columns.squares[c];
      col_absmax_[col + c] = std::max(col_absmax_[col + c], columns.absmax[c]);
    }
  }

  void finish_lines() {
    const auto rows = row_squares_.size() / static_cast<std::size_t>(chunks_);
    for (std::size_t r = 0; r < rows; ++r) {
      double squares = 0;
      double absmax = 0;
      for (std::size_t place = r; place < row_squares_.size(); place += rows) {
        squares += row_squares_[place];
        absmax = std::max(absmax, row_absmax_[place]);
      }
      out_.row_norm.push_back(to_float_cell(std::sqrt(squares)));
      out_.row_absmax.push_back(to_float_cell(absmax));
    }
    for (std::size_t c = 0; c < col_squares_.size(); ++c) {
      out_.col_norm.push_back(to_float_cell(std::sqrt(col_squares_[c])));
      out_.col_absmax.push_back(to_float_cell(col_absmax_[c]));
    }
  }

  Pyramid::Data& out_;
  const Plane::Data& source_;
  const PlaneForm& form_;
  std::int64_t chunks_;
  std::int64_t unit_rows_ = 0;
  std::int64_t units_ = 0;
  SharedProgress progress_;
  bool keeps_rows_;
  bool keeps_cols_;
  std::vector<double> row_squares_;
  std::vector<double> row_absmax_;
  std::vector<double> col_squares_;
  std::vector<double> col_absmax_;
  std::mutex mutex_;
};

Cell fold_blocks(const Pyramid::Data& data, int level, std::int64_t row, std::int64_t col) {
  const int up = level - Pyramid::kLevel;
  Cell cell;
  for (std::int64_t y = row << up; y < std::min((row + 1) << up, data.height); ++y) {
    for (std::int64_t x = col << up; x < std::min((col + 1) << up, data.width); ++x) {
      const Block& block = data.blocks[static_cast<std::size_t>(y * data.width + x)];
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
  if (!kept) return data_->plane.lines(axis, of);
  if (rows) return thinned(of == LineStat::norm ? data_->row_norm : data_->row_absmax, true);
  return thinned(of == LineStat::norm ? data_->col_norm : data_->col_absmax, true);
}

Pyramid pyramid(const Plane& plane, const Progress& progress, Summary* summary) {
  const Plane::Data& source = *plane.data_;
  auto data = std::make_shared<Pyramid::Data>(Pyramid::Data{plane, plane.data_});
  const std::uint64_t own = source.bytes_in(source.form.rows * source.form.cols);
  const std::uint64_t others = summary == nullptr ? 0 : source.a.tensor().size_bytes();
  if (summary != nullptr) {
    *summary = ballast::summary(source.a.tensor(), [&](std::uint64_t done, std::uint64_t) {
      if (progress) progress(done, own + others);
    });
  }
  data->width = (source.form.cols + kBlock - 1) / kBlock;
  data->height = (source.form.rows + kBlock - 1) / kBlock;
  data->blocks.resize(static_cast<std::size_t>(data->width * data->height));
  const Progress rest = [&](std::uint64_t done, std::uint64_t) {
    if (progress) progress(others + done, own + others);
  };
  if (!data->blocks.empty()) {
    if (source.needs_double()) {
      Builder<double>(*data, rest, own).run();
    } else {
      Builder<float>(*data, rest, own).run();
    }
  }
  Pyramid result;
  result.data_ = std::move(data);
  return result;
}

}  // namespace ballast
