// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>

#include "base/shared_progress.h"
#include "base/thread_pool.h"
#include "tensor/fold_kernels.h"
#include "tensor/plane_data.h"
#include "tensor/stats_pass.h"

namespace ballast {
namespace {

constexpr std::int64_t kBlockSide = std::int64_t{1} << Pyramid::kLevel;
constexpr std::int64_t kWidth = std::int64_t{1} << 16U;      // columns one thread takes at a time
constexpr std::int64_t kAtOnce = std::int64_t{1} << 17U;     // elements
constexpr std::int64_t kInCache = 512;                       // columns
constexpr std::int64_t kSlab = std::int64_t{1} << 25U;       // elements; what the page cache surely keeps
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
    const std::int64_t rows = std::min(kBlockSide, form.rows - y * kBlockSide);
    const std::int64_t cols = std::min(kBlockSide, form.cols - x * kBlockSide);
    const bool has_last = y == height - 1;
    return (has_last ? rows - 1 : rows) * cols +
           (has_last ? form.present(form.rows - 1, x * kBlockSide, cols) : 0);
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

  [[nodiscard]] ColumnSums<T> sums(std::int64_t from) {
    return {min.data() + from, max.data() + from, sum.data() + from, nan.data() + from,
            squares.data() + from};
  }

  void begin_band(std::size_t width) {
    min.assign(width, std::numeric_limits<T>::infinity());
    max.assign(width, -std::numeric_limits<T>::infinity());
    sum.assign(width, 0.0);
    nan.assign(width, 0U);
  }
};

template <class T>
class PyramidBuilder {
 public:
  PyramidBuilder(Pyramid::Data& out, SharedProgress& progress)
      : out_(out),
        source_(*out.source),
        form_(out.source->form),
        chunks_((form_.cols - 1) / kWidth + 1),
        progress_(progress),
        // Narrow pictures: many bands at once.
        unit_rows_(kBlockSide *
                   std::max<std::int64_t>(1, kAtOnce / (std::min(kWidth, form_.cols) * kBlockSide))),
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

  /// How many rows to look at before something else has its turn with the same bytes.
  [[nodiscard]] std::int64_t slab_rows() const {
    return std::max(unit_rows_, kSlab / form_.cols / unit_rows_ * unit_rows_);
  }

  /// Rows [begin, end), `begin` a multiple of slab_rows().
  void run(std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin / unit_rows_;
    const std::int64_t units = (end - 1) / unit_rows_ + 1 - first;
    parallel_for(static_cast<std::uint64_t>(units * chunks_), 1, [&](std::uint64_t from, std::uint64_t to) {
      work(static_cast<std::int64_t>(from), static_cast<std::int64_t>(to), first, units);
    });
  }

  void finish() {
    const auto rows = row_squares_.size() / static_cast<std::size_t>(chunks_);
    for (std::size_t r = 0; r < rows; ++r) {
      RowSums row;
      for (std::size_t place = r; place < row_squares_.size(); place += rows) {
        row.squares += row_squares_[place];
        row.absmax = std::max(row.absmax, row_absmax_[place]);
      }
      out_.row_norm.push_back(to_float_cell(std::sqrt(row.squares)));
      out_.row_absmax.push_back(to_float_cell(row.absmax));
    }
    for (std::size_t c = 0; c < col_squares_.size(); ++c) {
      out_.col_norm.push_back(to_float_cell(std::sqrt(col_squares_[c])));
      out_.col_absmax.push_back(to_float_cell(col_absmax_[c]));
    }
  }

 private:
  // Neighbouring units have the same columns.
  void work(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t units) {
    PlaneScratch<T> scratch;
    while (begin < end) {
      const std::int64_t chunk = begin / units;
      const std::int64_t last = std::min(end, (chunk + 1) * units);
      const std::int64_t col = chunk * kWidth;
      const std::int64_t width = std::min(kWidth, form_.cols - col);
      Columns<T> columns(static_cast<std::size_t>(width));
      for (; begin < last; ++begin) {
        const std::int64_t row = (first + begin - chunk * units) * unit_rows_;
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
      const std::int64_t last = r + height;
      while (r < last) {
        const std::int64_t band = r / kBlockSide;
        const std::int64_t until = std::min(last, (band + 1) * kBlockSide);
        fold_part_of_band(values, r, until, col, width, columns);
        values += (until - r) * width;
        r = until;
        if (r % kBlockSide == 0 || r == form_.rows) end_band(band, col, width, columns);
      }
    }
  }

  // Some columns at a time: what is known of them stays in the first-level cache.
  void fold_part_of_band(const T* values, std::int64_t row, std::int64_t end, std::int64_t col,
                         std::int64_t width, Columns<T>& columns) {
    for (std::int64_t from = 0; from < width; from += kInCache) {
      const ColumnSums<T> sums = columns.sums(from);
      const std::int64_t part = std::min(kInCache, width - from);
      for (std::int64_t r = row; r < end; ++r) {
        const auto present = static_cast<std::size_t>(form_.present(r, col + from, part));
        const RowSums found = fold_row(values + (r - row) * width + from, present, sums, isa_);
        if (!keeps_rows_) continue;
        const auto place = static_cast<std::size_t>(col / kWidth * form_.rows + r);
        row_squares_[place] += found.squares;
        row_absmax_[place] = std::max(row_absmax_[place], found.absmax);
      }
    }
  }

  void end_band(std::int64_t band, std::int64_t col, std::int64_t width, Columns<T>& columns) {
    for (std::int64_t from = 0; from < width; from += kBlockSide) {
      Cell cell;
      const std::int64_t x = (col + from) / kBlockSide;
      for (auto c = static_cast<std::size_t>(from);
           c < static_cast<std::size_t>(std::min(width, from + kBlockSide)); ++c) {
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

  Pyramid::Data& out_;
  const Plane::Data& source_;
  const PlaneForm& form_;
  std::int64_t chunks_;
  SharedProgress& progress_;
  std::int64_t unit_rows_;
  Isa isa_ = best_isa();
  bool keeps_rows_;
  bool keeps_cols_;
  std::vector<double> row_squares_;
  std::vector<double> row_absmax_;
  std::vector<double> col_squares_;
  std::vector<double> col_absmax_;
  std::mutex mutex_;
};

// Slab by slab, and the values of each slab while its bytes are still in memory: a large file is read once.
template <class T>
void build_slabs(Pyramid::Data& data, SharedProgress& progress, std::optional<SummaryPass>& values) {
  PyramidBuilder<T> builder(data, progress);
  const PlaneForm& form = data.source->form;
  for (std::int64_t row = 0; row < form.rows; row += builder.slab_rows()) {
    const std::int64_t end = std::min(form.rows, row + builder.slab_rows());
    builder.run(row, end);
    if (values && data.plane.whole()) {
      const double part = static_cast<double>(end) / static_cast<double>(form.rows);
      values->run(static_cast<std::uint64_t>(part * static_cast<double>(values->values())), progress);
    }
  }
  builder.finish();
}

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
  if (!kept && !data_->blocks.empty()) return data_->plane.lines(axis, of);
  if (rows) return thinned(of == LineStat::norm ? data_->row_norm : data_->row_absmax, true);
  return thinned(of == LineStat::norm ? data_->col_norm : data_->col_absmax, true);
}

Pyramid pyramid(const Plane& plane, const Progress& progress, Summary* summary) {
  const Plane::Data& source = *plane.data_;
  auto data = std::make_shared<Pyramid::Data>(Pyramid::Data{plane, plane.data_});
  data->width = (source.form.cols + kBlockSide - 1) / kBlockSide;
  data->height = (source.form.rows + kBlockSide - 1) / kBlockSide;
  data->blocks.resize(static_cast<std::size_t>(data->width * data->height));
  const std::uint64_t others = summary == nullptr ? 0 : source.a.tensor().size_bytes();
  SharedProgress shared(progress, source.bytes_in(source.form.rows * source.form.cols) + others);
  std::optional<SummaryPass> values;
  if (summary != nullptr) values.emplace(source.a.tensor());
  if (data->blocks.empty()) {
    data->row_norm.resize(static_cast<std::size_t>(std::min(source.form.rows, kMostLines)));
    data->row_absmax = data->row_norm;
    data->col_norm.resize(static_cast<std::size_t>(std::min(source.form.cols, kMostLines)));
    data->col_absmax = data->col_norm;
  } else if (source.needs_double()) {
    build_slabs<double>(*data, shared, values);
  } else {
    build_slabs<float>(*data, shared, values);
  }
  if (values) {
    values->run(values->values(), shared);
    *summary = values->finish();
  }
  Pyramid result;
  result.data_ = std::move(data);
  return result;
}

}  // namespace ballast
