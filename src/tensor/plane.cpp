// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/thread_pool.h"
#include "tensor/describe.h"
#include "tensor/plane_data.h"

namespace ballast {
namespace {

constexpr int kTileReaders = 32;  // a disk's queue matters more than cores

std::vector<std::int64_t> checked_axes(const Tensor& tensor, std::vector<std::int64_t> axes) {
  const auto rank = static_cast<std::int64_t>(tensor.rank());
  if (axes.empty()) {
    for (std::int64_t axis = std::max<std::int64_t>(0, rank - 2); axis < rank; ++axis) axes.push_back(axis);
  }
  for (std::int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
      fail(Errc::invalid_argument, describe(tensor.dtype(), tensor.shape()), "has no such axis to show");
  }
  if (axes.size() > 2 || (axes.size() == 2 && axes[0] == axes[1]))
    fail(Errc::invalid_argument, describe(tensor.dtype(), tensor.shape()), "shows two different axes, not {}",
         axes.size());
  return axes;
}

// The element all other indices lead to, from the tensor's first on; `at` becomes an index for each.
std::int64_t first_element(const Tensor& tensor, const std::vector<std::int64_t>& axes,
                           std::vector<std::int64_t>& at) {
  const std::size_t others = tensor.rank() - axes.size();
  if (at.empty()) at.resize(others, 0);
  if (at.size() != others) {
    fail(Errc::invalid_argument, describe(tensor.dtype(), tensor.shape()),
         "needs {} indices beside the axes that are shown, not {}", others, at.size());
  }
  std::int64_t first = 0;
  std::size_t next = 0;
  for (std::size_t axis = 0; axis < tensor.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end()) continue;
    const std::int64_t size = tensor.shape()[axis];
    std::int64_t& index = at[next++];
    if (index < 0) index += size;
    if ((index < 0 || index >= size) && tensor.numel() > 0) {
      fail(Errc::invalid_argument, describe(tensor.dtype(), tensor.shape()), "axis {} has no index {}", axis,
           index);
    }
    first += index * tensor.strides()[axis];
  }
  return tensor.numel() > 0 ? first : 0;
}

// Nearly a square, in whole groups of 64 elements where there are that many.
std::int64_t fold_width(std::int64_t count) {
  auto width = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  if (width >= 64) width = (width + 63) / 64 * 64;
  return std::max<std::int64_t>(width, 1);
}

Plane::Data plane_data(const Tensor& tensor, const std::vector<std::int64_t>& wanted,
                       const std::vector<std::int64_t>& indices) {
  const std::vector<std::int64_t> axes = checked_axes(tensor, wanted);
  std::vector<std::int64_t> at = indices;
  const std::int64_t first = first_element(tensor, axes, at);
  const auto size = [&](std::size_t i) { return tensor.shape()[static_cast<std::size_t>(axes[i])]; };
  const auto stride = [&](std::size_t i) { return tensor.strides()[static_cast<std::size_t>(axes[i])]; };
  PlaneForm form{1, 1, 1};
  std::optional<std::int64_t> fold;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
  if (axes.size() == 2) {
    form = {size(0), size(1), size(1)};
    row_stride = stride(0);
    col_stride = stride(1);
  } else if (axes.size() == 1) {
    const std::int64_t width = fold_width(size(0));
    const std::int64_t rows = (size(0) + width - 1) / width;
    form = {rows, rows == 0 ? 0 : width, size(0) - std::max<std::int64_t>(rows - 1, 0) * width};
    fold = width;
    row_stride = width * stride(0);
    col_stride = stride(0);
  }
  if (tensor.numel() == 0 && axes.size() < 2) form = {0, 0, 0};
  if (tensor.numel() == 0 && axes.size() == 2 && form.rows > 0 && form.cols > 0) form = {0, 0, 0};
  return {.form = form,
          .a = PlaneSource(tensor, form, row_stride, col_stride, first),
          .axes = axes,
          .at = at,
          .fold = fold};
}

void lay_best(Plane::Data& data) {
  const bool rows_are_closer = std::abs(data.a.row_stride()) < std::abs(data.a.col_stride());
  if (data.fold || !rows_are_closer || data.form.rows <= 1) return;
  data.swapped = true;
  data.a.swap();
  if (data.b) data.b->swap();
  std::swap(data.form.rows, data.form.cols);
  data.form.last_cols = data.form.cols;
}

template <class T>
void combine(Delta delta, const std::vector<T>& others, std::vector<T>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const T a = numbers[i];
    const T b = others[i];
    const T difference = a == b ? T{0} : a - b;  // of equal infinities too
    switch (delta) {
      case Delta::difference:
        numbers[i] = difference;
        break;
      case Delta::ratio:
        numbers[i] = a / b;
        break;
      case Delta::sign:
        numbers[i] = difference > 0 ? T{1} : difference < 0 ? T{-1} : difference;
        break;
    }
  }
}

bool is_long_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::u64;
}

// Numbers of 64 bits are not all doubles: a difference of 1 would be 0. Here is room for them, and for
// doubles.
using ExactNumber = long double;
static_assert(std::numeric_limits<ExactNumber>::digits >= 64);

// work(how to get at number i), for each dtype's way.
template <class Work>
void with_exact_numbers(DType dtype, const std::vector<std::byte>& raw, const std::vector<double>& numbers,
                        Work&& work) {
  const auto load = [&raw](auto integer, std::size_t i) {
    return static_cast<ExactNumber>(load_le<decltype(integer)>(raw.data() + i * sizeof integer));
  };
  if (dtype == DType::i64) return work([&](std::size_t i) { return load(std::int64_t{}, i); });
  if (dtype == DType::u64) return work([&](std::size_t i) { return load(std::uint64_t{}, i); });
  work([&](std::size_t i) { return static_cast<ExactNumber>(numbers[i]); });
}

void subtract_exactly(const Plane::Data& data, PlaneScratch<double>& scratch) {
  with_exact_numbers(data.a.tensor().dtype(), scratch.raw, scratch.numbers, [&](auto a) {
    with_exact_numbers(data.b->tensor().dtype(), scratch.other_raw, scratch.others, [&](auto b) {
      for (std::size_t i = 0; i < scratch.numbers.size(); ++i) {
        const auto difference = static_cast<double>(a(i) - b(i));
        const double sign = difference > 0 ? 1 : difference < 0 ? -1 : difference;
        scratch.numbers[i] = data.delta == Delta::sign ? sign : difference;
      }
    });
  });
}

template <class T>
void fold_cell_row(const Plane::Data& data, const TileFrame& frame, std::int64_t row,
                   PlaneScratch<T>& scratch, Cell* cells) {
  const std::int64_t cell = std::int64_t{1} << frame.level;
  const std::int64_t col = frame.col << frame.level;
  const std::int64_t width = std::min(frame.width << frame.level, data.form.cols - col);
  const std::int64_t begin = (frame.row + row) << frame.level;
  const std::int64_t end = std::min(begin + cell, data.form.rows);
  const std::int64_t at_once = std::max<std::int64_t>(1, (std::int64_t{1} << 18U) / width);
  for (std::int64_t r = begin; r < end; r += at_once) {
    const std::int64_t height = std::min(at_once, end - r);
    const T* numbers = read_numbers(data, r, col, height, width, scratch);
    for (std::int64_t i = 0; i < height; ++i) {
      const std::int64_t present = data.form.present(r + i, col, width);
      for (std::int64_t c = 0; c < present; c += cell)
        cells[c >> frame.level].add(numbers + i * width + c, std::min(cell, present - c));
    }
  }
}

template <class T>
Tile folded_tile(const Plane::Data& data, const TileFrame& frame, CellStat stat) {
  std::vector<Cell> cells(static_cast<std::size_t>(frame.width * frame.height));
  parallel_read(static_cast<std::uint64_t>(frame.height), data.readers(), [&](std::uint64_t row) {
    PlaneScratch<T> scratch;
    fold_cell_row(data, frame, static_cast<std::int64_t>(row), scratch,
                  cells.data() + row * static_cast<std::uint64_t>(frame.width));
  });
  return finished_tile(cells, frame.width, frame.height, stat, data.swapped, true);
}

}  // namespace

std::uint64_t Plane::Data::bytes_in(std::int64_t elements) const {
  const auto count = static_cast<std::uint64_t>(elements);
  return bytes_of(a.tensor().dtype(), count) + (b ? bytes_of(b->tensor().dtype(), count) : 0);
}

int Plane::Data::readers() const {
  return a.waits() || (b && b->waits()) ? std::max(kTileReaders, thread_count()) : thread_count();
}

template <class T>
const T* read_numbers(const Plane::Data& data, std::int64_t row, std::int64_t col, std::int64_t height,
                      std::int64_t width, PlaneScratch<T>& scratch) {
  const auto count = static_cast<std::size_t>(height * width);
  scratch.numbers.resize(count);
  data.a.read(row, col, height, width, scratch.raw, scratch.numbers.data());
  if (data.b) {
    scratch.others.resize(count);
    data.b->read(row, col, height, width, scratch.other_raw, scratch.others.data());
    if constexpr (std::is_same_v<T, double>) {
      const bool is_long =
          is_long_integer(data.a.tensor().dtype()) || is_long_integer(data.b->tensor().dtype());
      if (is_long && data.delta != Delta::ratio) {
        subtract_exactly(data, scratch);
        return scratch.numbers.data();
      }
    }
    combine(data.delta, scratch.others, scratch.numbers);
  }
  return scratch.numbers.data();
}

template const float* read_numbers(const Plane::Data&, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                   PlaneScratch<float>&);
template const double* read_numbers(const Plane::Data&, std::int64_t, std::int64_t, std::int64_t,
                                    std::int64_t, PlaneScratch<double>&);

double Cell::show(CellStat stat) const {
  if (stat == CellStat::nan) {
    const std::uint64_t all = numbers + nan;
    return all == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(nan) / static_cast<double>(all);
  }
  if (numbers == 0) return std::numeric_limits<double>::quiet_NaN();
  if (stat == CellStat::mean) return sum / static_cast<double>(numbers);
  if (stat == CellStat::absmax)
    return std::max(std::abs(min), std::abs(max));  // of zeros, too, without a sign
  return -min > max ? min : max;
}

float to_float_cell(double value) noexcept {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::isfinite(value) ? std::clamp(value, -kMost, kMost) : value);
}

Tile finished_tile(const std::vector<Cell>& cells, std::int64_t width, std::int64_t height, CellStat stat,
                   bool swapped, bool exact) {
  Tile tile;
  tile.exact = exact;
  tile.width = swapped ? height : width;
  tile.height = swapped ? width : height;
  tile.cells.resize(cells.size());
  bool any = false;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const float value = to_float_cell(cells[static_cast<std::size_t>(y * width + x)].show(stat));
      tile.cells[static_cast<std::size_t>(swapped ? x * height + y : y * width + x)] = value;
      if (value != value) ++tile.nan;
      if (!std::isfinite(value)) continue;
      tile.min = any ? std::min(tile.min, value) : value;
      tile.max = any ? std::max(tile.max, value) : value;
      any = true;
    }
  }
  return tile;
}

TileFrame frame_of(const Plane::Data& data, int level, std::int64_t x, std::int64_t y) {
  const Tensor& tensor = data.a.tensor();
  if (level < 0 || level > 62)
    fail(Errc::invalid_argument, describe(tensor.dtype(), tensor.shape()), "has no level {} to show", level);
  if (data.swapped) std::swap(x, y);
  const auto cells = [&](std::int64_t size, std::int64_t tile) -> std::int64_t {
    const std::int64_t all = size == 0 ? 0 : ((size - 1) >> level) + 1;
    if (tile < 0 || tile > (all - 1) / Plane::kTile || all == 0) return 0;
    return std::min(Plane::kTile, all - tile * Plane::kTile);
  };
  const std::int64_t width = cells(data.form.cols, x);
  const std::int64_t height = cells(data.form.rows, y);
  if (width == 0 || height == 0) return {level, 0, 0, 0, 0};  // x and y may be any numbers
  return {level, x * Plane::kTile, y * Plane::kTile, width, height};
}

Tile exact_tile(const Plane::Data& data, const TileFrame& frame, CellStat stat) {
  return data.needs_double() ? folded_tile<double>(data, frame, stat) : folded_tile<float>(data, frame, stat);
}

Plane::Plane(const Tensor& tensor, const std::vector<std::int64_t>& axes,
             const std::vector<std::int64_t>& at) {
  Data data = plane_data(tensor, axes, at);
  lay_best(data);
  data_ = std::make_shared<Data>(std::move(data));
}

Plane::Plane(const Tensor& a, const Tensor& b, Delta delta, const std::vector<std::int64_t>& axes,
             const std::vector<std::int64_t>& at) {
  if (a.shape() != b.shape()) {
    fail(Errc::shape_mismatch, describe(a.dtype(), a.shape()), "cannot be shown against {}",
         describe(b.dtype(), b.shape()));
  }
  Data data = plane_data(a, axes, at);
  data.b = plane_data(b, axes, at).a;
  data.delta = delta;
  lay_best(data);
  data_ = std::make_shared<Data>(std::move(data));
}

std::int64_t Plane::rows() const noexcept {
  return data_->swapped ? data_->form.cols : data_->form.rows;
}

std::int64_t Plane::cols() const noexcept {
  return data_->swapped ? data_->form.rows : data_->form.cols;
}

std::optional<std::int64_t> Plane::fold() const noexcept {
  return data_->fold;
}

int Plane::levels() const noexcept {
  int level = 0;
  while (((std::max(rows(), cols()) - 1) >> level) >= kTile) ++level;
  return level + 1;
}

const std::vector<std::int64_t>& Plane::axes() const noexcept {
  return data_->axes;
}

const std::vector<std::int64_t>& Plane::at() const noexcept {
  return data_->at;
}

bool Plane::whole() const noexcept {
  const PlaneForm& form = data_->form;
  const std::int64_t shown = form.rows == 0 ? 0 : (form.rows - 1) * form.cols + form.last_cols;
  return shown == data_->a.tensor().numel();
}

Tensor Plane::elements(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width) const {
  const auto cut = [](std::int64_t& start, std::int64_t& length, std::int64_t size) {
    start = std::clamp<std::int64_t>(start, 0, size);
    length = std::clamp<std::int64_t>(length, 0, size - start);
  };
  cut(row, height, rows());
  cut(col, width, cols());
  const bool swapped = data_->swapped;
  std::vector<std::byte> raw;
  if (swapped) {
    data_->a.read(col, row, width, height, raw);
  } else {
    data_->a.read(row, col, height, width, raw);
  }
  auto storage = Storage::heap(raw.size());
  std::copy(raw.begin(), raw.end(), storage->mutable_data());
  Shape shape = swapped ? Shape{width, height} : Shape{height, width};
  const Tensor read =
      Tensor::contiguous_view(data_->a.tensor().dtype(), std::move(shape), std::move(storage));
  return swapped ? read.t().contiguous() : read;
}

}  // namespace ballast
