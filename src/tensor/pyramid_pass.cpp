// SPDX-License-Identifier: Apache-2.0
// One reading of a plane: blocks, rows and columns, and besides, where the plane shows all values of its
// tensor in their order, their summary from the same bytes.
#include <algorithm>
#include <mutex>
#include <optional>
#include <type_traits>

#include "base/thread_pool.h"
#include "tensor/cast.h"
#include "tensor/describe.h"
#include "tensor/fold_kernels.h"
#include "tensor/meaning.h"
#include "tensor/pyramid_data.h"
#include "tensor/shared_summary.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

constexpr std::int64_t kWidth = std::int64_t{1} << 14U;  // columns one thread takes at a time
constexpr std::int64_t kBytesAtOnce = std::int64_t{1}
                                      << 19U;                 // of numbers: what the second-level cache holds
constexpr std::int64_t kSlab = std::int64_t{1} << 25U;        // elements; what the page cache surely keeps
constexpr std::int64_t kSharedSlab = std::int64_t{1} << 28U;  // where nobody reads them a second time
constexpr std::int64_t kGroupsOfThread = 16;  // of a slab: little is left to wait for at its end

static_assert(kPyramidSide == kFoldColumns && kPyramidSide <= kMostFoldRows && kWidth % kPyramidSide == 0);

// What one thread knows of some columns: of all its rows, and of the band of 64 rows it is at.
template <class T>
struct Columns {
  std::vector<T> absmax;
  std::vector<double> squares;
  std::vector<BlockSums<T>> band;

  explicit Columns(std::size_t width)
      : absmax(width), squares(width), band((width + kFoldColumns - 1) / kFoldColumns) {}
};

template <class T>
class PyramidBuilder {
 public:
  /// `values`, when given, is of the plane's tensor, whose row-major order is the plane's.
  PyramidBuilder(Pyramid::Data& out, SharedProgress& progress, SharedSummary* values)
      : out_(out),
        source_(*out.source),
        form_(out.source->form),
        values_(values),
        progress_(progress),
        at_once_(kBytesAtOnce / static_cast<std::int64_t>(sizeof(T))),
        chunks_((form_.cols - 1) / kWidth + 1),
        // Narrow pictures: many bands at once.
        unit_rows_(kPyramidSide *
                   std::max<std::int64_t>(1, at_once_ / (std::min(kWidth, form_.cols) * kPyramidSide))),
        keeps_rows_(form_.rows <= kMostLines),
        keeps_cols_(form_.cols <= kMostLines) {
    if (keeps_rows_) row_sums_.resize(static_cast<std::size_t>(form_.rows * chunks_));
    if (keeps_cols_) {
      col_squares_.resize(static_cast<std::size_t>(form_.cols));
      col_absmax_.resize(col_squares_.size());
    }
  }

  /// How many rows to look at before something else has its turn.
  [[nodiscard]] std::int64_t slab_rows() const {
    const std::int64_t elements = values_ == nullptr ? kSlab : kSharedSlab;
    return std::max(unit_rows_, elements / form_.cols / unit_rows_ * unit_rows_);
  }

  /// Rows [begin, end), `begin` a multiple of slab_rows().
  void run(std::int64_t begin, std::int64_t end) {
    if (values_ != nullptr)
      values_->expect(static_cast<std::uint64_t>(begin * form_.cols),
                      std::min(static_cast<std::uint64_t>(end * form_.cols), values_->values()));
    const std::int64_t units = (end - begin - 1) / unit_rows_ + 1;
    const std::int64_t threads = thread_count();
    const std::int64_t together = std::max<std::int64_t>(1, units * chunks_ / (threads * kGroupsOfThread));
    const std::int64_t groups = (units - 1) / together + 1;  // of a chunk
    parallel_read(static_cast<std::uint64_t>(groups * chunks_), static_cast<int>(threads),
                  [&](std::uint64_t number) {
                    const auto group = static_cast<std::int64_t>(number);
                    const std::int64_t first = begin + group % groups * together * unit_rows_;
                    work(first, std::min(end, first + together * unit_rows_), group / groups);
                  });
    if (values_ != nullptr) values_->settle();
  }

  void finish() {
    const std::size_t rows = row_sums_.size() / static_cast<std::size_t>(chunks_);
    for (std::size_t r = 0; r < rows; ++r) {
      RowSums row;
      for (std::size_t place = r; place < row_sums_.size(); place += rows) {
        row.squares += row_sums_[place].squares;
        row.absmax = std::max(row.absmax, row_sums_[place].absmax);
      }
      out_.row_norm.push_back(to_float_cell(std::sqrt(row.squares)));
      out_.row_absmax.push_back(to_float_cell(row.absmax));
    }
    for (std::size_t c = 0; c < col_squares_.size(); ++c) {
      out_.col_norm.push_back(to_float_cell(std::sqrt(col_squares_[c])));
      out_.col_absmax.push_back(to_float_cell(static_cast<double>(col_absmax_[c])));
    }
  }

 private:
  struct Scratch {
    PlaneScratch<T> plane;
    std::optional<BucketCounter> counter;
    std::vector<RowSums> rows;
  };

  // Some rows of the numbers, one beginning `pitch` after the other.
  struct Numbers {
    const T* values;
    std::int64_t pitch;
  };

  void work(std::int64_t row, std::int64_t end, std::int64_t chunk) {
    const std::int64_t col = chunk * kWidth;
    const std::int64_t width = std::min(kWidth, form_.cols - col);
    const std::int64_t at_once = std::max<std::int64_t>(1, at_once_ / width);
    Columns<T> columns(static_cast<std::size_t>(width));
    Scratch scratch;
    if (values_ != nullptr) scratch.counter = values_->take_counter();
    while (row < end) {
      const std::int64_t height = std::min(at_once, end - row);
      const Numbers numbers =
          values_ == nullptr ? Numbers{read_numbers(source_, row, col, height, width, scratch.plane), width}
                             : read_and_look(row, col, height, width, scratch);
      progress_.add(source_.bytes_in(height * width));
      fold_bands(numbers, row, row + height, col, width, columns, scratch);
      row += height;
    }
    if (values_ != nullptr) values_->give_back(std::move(*scratch.counter));
    if (keeps_cols_) add_columns(columns, static_cast<std::size_t>(col));
  }

  // Whole rows lie behind each other; parts of rows are read one by one.
  Numbers read_and_look(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
                        Scratch& scratch) {
    const bool is_whole = width == form_.cols;
    const std::int64_t pitch = is_whole ? width : width + static_cast<std::int64_t>(kStatsBlock);
    const std::int64_t last = form_.present(row + height - 1, col, width);
    const auto room = static_cast<std::size_t>(height * pitch) + kStatsBlock;
    const DType stored = values_->stored();
    scratch.plane.raw.resize(static_cast<std::size_t>(bytes_of(stored, room)));
    if (dtype_of<T> != stored) scratch.plane.numbers.resize(room);
    if (is_whole) {
      look(row * form_.cols, (height - 1) * width + last, 0, scratch);
    } else {
      for (std::int64_t i = 0; i < height; ++i)
        look((row + i) * form_.cols + col, i == height - 1 ? last : width, i * pitch, scratch);
    }
    return {dtype_of<T> == stored ? reinterpret_cast<const T*>(scratch.plane.raw.data())
                                  : scratch.plane.numbers.data(),
            pitch};
  }

  // Values [first, first + count) to place `at` of the scratch.
  void look(std::int64_t first, std::int64_t count, std::int64_t at, Scratch& scratch) {
    if (count == 0) return;
    const auto begin = static_cast<std::uint64_t>(first);
    const std::uint64_t reach = values_->reach(begin, static_cast<std::uint64_t>(count));
    const DType stored = values_->stored();
    const auto size = static_cast<std::size_t>(bytes_of(stored, reach));
    std::byte* raw = scratch.plane.raw.data() + bytes_of(stored, static_cast<std::uint64_t>(at));
    source_.a.tensor().read(bytes_of(stored, begin), {raw, size});
    const T* numbers = reinterpret_cast<const T*>(raw);
    if (dtype_of<T> != stored) {
      T* cast = scratch.plane.numbers.data() + at;
      cast_elements(stored, raw, dtype_of<T>, reinterpret_cast<std::byte*>(cast),
                    static_cast<std::size_t>(reach));
      numbers = cast;
    }
    values_->add(raw, numbers, begin, static_cast<std::uint64_t>(count), *scratch.counter);
  }

  void fold_bands(Numbers numbers, std::int64_t row, std::int64_t end, std::int64_t col, std::int64_t width,
                  Columns<T>& columns, Scratch& scratch) {
    while (row < end) {
      const std::int64_t band = row / kPyramidSide;
      const std::int64_t until = std::min(end, (band + 1) * kPyramidSide);
      const std::int64_t last = form_.present(until - 1, col, width);
      const std::int64_t full = last == width ? until : until - 1;
      fold(numbers, row, full, col, width, columns, scratch);
      if (full < until)
        fold({numbers.values + (full - row) * numbers.pitch, numbers.pitch}, full, until, col, last, columns,
             scratch);
      numbers.values += (until - row) * numbers.pitch;
      row = until;
      if (row % kPyramidSide == 0 || row == form_.rows) end_band(band, col, columns);
    }
  }

  void fold(const Numbers& numbers, std::int64_t row, std::int64_t end, std::int64_t col, std::int64_t width,
            Columns<T>& columns, Scratch& scratch) {
    const auto rows = static_cast<std::size_t>(end - row);
    if (rows == 0 || width == 0) return;
    scratch.rows.assign(rows, RowSums());
    fold_rows<T>(numbers.values, static_cast<std::size_t>(numbers.pitch), rows,
                 static_cast<std::size_t>(width), {columns.absmax.data(), columns.squares.data()},
                 columns.band.data(), scratch.rows.data(), isa_);
    if (keeps_rows_)
      std::copy(scratch.rows.begin(), scratch.rows.end(),
                row_sums_.begin() + static_cast<std::ptrdiff_t>(col / kWidth * form_.rows + row));
  }

  void end_band(std::int64_t band, std::int64_t col, Columns<T>& columns) {
    std::int64_t x = col / kPyramidSide;
    for (BlockSums<T>& block : columns.band) {
      const double numbers = static_cast<double>(out_.elements_in(band, x)) - static_cast<double>(block.nan);
      out_.blocks[static_cast<std::size_t>(band * out_.width + x++)] = {
          to_float_cell(static_cast<double>(block.min)), to_float_cell(static_cast<double>(block.max)),
          to_float_cell(numbers > 0 ? block.sum / numbers : 0.0), block.nan};
      block = {};
    }
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
  SharedSummary* values_;
  SharedProgress& progress_;
  std::int64_t at_once_;  // elements
  std::int64_t chunks_;
  std::int64_t unit_rows_;
  Isa isa_ = best_isa();
  bool keeps_rows_;
  bool keeps_cols_;
  std::vector<RowSums> row_sums_;  // chunk by chunk
  std::vector<double> col_squares_;
  std::vector<T> col_absmax_;
  std::mutex mutex_;
};

// Its values, one after the other, are the plane's rows, one after the other.
bool shows_all_in_order(const Pyramid::Data& data) {
  const Plane::Data& source = *data.source;
  const Tensor& tensor = source.a.tensor();
  const Meaning meaning = meaning_of(tensor.dtype());
  const bool rows_follow = source.form.rows == 1 || source.a.row_stride() == source.form.cols;
  const bool cols_follow = source.form.cols == 1 || source.a.col_stride() == 1;
  return !source.b && data.plane.whole() && tensor.is_contiguous() && rows_follow && cols_follow &&
         meaning.per_element == 1 && info(meaning.stored).bits >= 8;
}

template <class T>
void fill_at_once(Pyramid::Data& data, SharedProgress& progress, SharedSummary* values) {
  PyramidBuilder<T> builder(data, progress, values);
  const PlaneForm& form = data.source->form;
  for (std::int64_t row = 0; row < form.rows; row += builder.slab_rows())
    builder.run(row, std::min(form.rows, row + builder.slab_rows()));
  builder.finish();
}

// Slab by slab, and the values of each slab while its bytes are still in memory: a large file is read once.
template <class T>
void fill_by_turns(Pyramid::Data& data, SharedProgress& progress, SummaryPass& values) {
  PyramidBuilder<T> builder(data, progress, nullptr);
  const PlaneForm& form = data.source->form;
  for (std::int64_t row = 0; row < form.rows; row += builder.slab_rows()) {
    const std::int64_t end = std::min(form.rows, row + builder.slab_rows());
    builder.run(row, end);
    if (!data.plane.whole()) continue;
    const double part = static_cast<double>(end) / static_cast<double>(form.rows);
    values.run(static_cast<std::uint64_t>(part * static_cast<double>(values.values())), progress);
  }
  builder.finish();
  values.run(values.values(), progress);
}

}  // namespace

void fill_pyramid(Pyramid::Data& data, const Progress& progress, Summary* summary) {
  const Plane::Data& source = *data.source;
  const Tensor& tensor = source.a.tensor();
  const std::uint64_t plane_bytes = source.bytes_in(source.form.rows * source.form.cols);
  if (summary == nullptr || shows_all_in_order(data)) {
    SharedProgress shared(progress, plane_bytes);
    std::optional<SharedSummary> values;
    if (summary != nullptr) values.emplace(tensor);
    const bool wide = values ? stats_need_double(values->stored()) : source.needs_double();
    wide ? fill_at_once<double>(data, shared, values ? &*values : nullptr)
         : fill_at_once<float>(data, shared, values ? &*values : nullptr);
    if (values) *summary = values->finish();
  } else {
    SharedProgress shared(progress, plane_bytes + tensor.size_bytes());
    SummaryPass values(tensor);
    source.needs_double() ? fill_by_turns<double>(data, shared, values)
                          : fill_by_turns<float>(data, shared, values);
    *summary = values.finish();
  }
  ChangeCheck check_unchanged;
  check_unchanged(tensor);
  if (source.b) check_unchanged(source.b->tensor());
}

}  // namespace ballast
