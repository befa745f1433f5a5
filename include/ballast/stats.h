// SPDX-License-Identifier: Apache-2.0
// What the values of a tensor look like: how many are not finite or zero, their range, mean and spread
// (stats()), how they are distributed (summary()), and where they lie (Plane, pyramid()). Read by position,
// piece by piece and on several threads, so that a tensor of any size needs a few megabytes and a file that
// is cut off meanwhile is an Error.
//
// Throws: as elements of a Tensor: Errc::invalid_argument for a shape alone (an undefined tensor has no
// values; a Plane refuses it), unsupported on another device,
// file_changed when the file was written to since it was opened, and what reading throws. Owns: results are
// values; a Plane and a Pyramid keep their tensors, and copies of one share its data. Threads: every function
// may be called from several at once; each works on all threads of runtime.h, and the numbers do not depend
// on how many. Costs: one pass over the bytes in a few megabytes, unless less is said.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ballast/detail/function.h"
#include "ballast/runtime.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What the values of a tensor are like.
struct TensorStats {
  std::uint64_t count = 0;    ///< values looked at; a complex element is two
  std::uint64_t nan = 0;      ///< values that are no number
  std::uint64_t inf = 0;      ///< of either sign
  std::uint64_t neg_inf = 0;  ///< those of inf below zero
  std::uint64_t zeros = 0;    ///< of either sign
  // Of the finite values; NaN when there is none. 64-bit integers beyond 2^53 are rounded.
  double min = std::numeric_limits<double>::quiet_NaN();   ///< the smallest
  double max = std::numeric_limits<double>::quiet_NaN();   ///< the largest
  double mean = std::numeric_limits<double>::quiet_NaN();  ///< summed up in double, in blocks
  double std = std::numeric_limits<double>::quiet_NaN();   ///< of the population, like numpy's

  /// How many values are finite.
  [[nodiscard]] std::uint64_t finite() const noexcept { return count - nan - inf; }

  /// The largest magnitude; NaN when no value is finite.
  [[nodiscard]] double absmax() const noexcept { return -min > max ? -min : max; }

  /// Euclidean length of the finite values as a vector.
  [[nodiscard]] double l2() const noexcept;

  /// There are values, and none is anything else.
  [[nodiscard]] bool all_zero() const noexcept { return count > 0 && zeros == count; }
};

/// Quantized tensors: their integers as they are stored. Opaque ones and integers packed below a byte: their
/// bytes. The same numbers come out however many threads there are. Throws when the tensor has no data.
[[nodiscard]] TensorStats stats(const Tensor& tensor);

/// One result a tensor. Large tensors are shared out among the threads, and so are many small ones.
/// `progress` is called with bytes done and in all; throwing from it stops the work. Errc::file_changed when
/// the file behind them was written to since it was opened.
[[nodiscard]] std::vector<TensorStats> stats(std::span<const Tensor> tensors, const Progress& progress = {});

/// How many values lie in each of `bins` equal parts of [low, high]; `high` itself is in the last. What lies
/// outside, and NaN, is not counted. Errc::invalid_argument for no bins, and unless low <= high are finite.
/// Reads the tensor once more, on several threads.
[[nodiscard]] std::vector<std::uint64_t> histogram(const Tensor& tensor, double low, double high,
                                                   std::size_t bins);

/// nan + inf of stats(), without the rest of the work.
[[nodiscard]] std::uint64_t count_not_finite(const Tensor& tensor);

/// So many values lie in [low, high]. Where both are the same, all of them are that value.
struct Bucket {
  double low = 0;           ///< the smallest it may hold
  double high = 0;          ///< the largest it may hold
  std::uint64_t count = 0;  ///< how many it holds

  /// The one that stands for all of them: half way, a whole number between whole numbers.
  [[nodiscard]] double middle() const noexcept;
};

/// Bin i holds the values in [edges[i], edges[i + 1]), the last one its upper edge too.
struct Histogram {
  std::vector<double> edges;          ///< one more than counts
  std::vector<std::uint64_t> counts;  ///< for each bin
  std::uint64_t below = 0;            ///< infinite values
  std::uint64_t above = 0;            ///< infinite values
};

/// How the values of a tensor are distributed: the finite ones counted by their leading bits. Of F16, BF16,
/// I16 and U16 and of all dtypes of 8 bits and fewer every value has a bucket of its own, and quantiles are
/// exact. Of the others a bucket is so narrow that its middle is no further from any of its values than 2^-8
/// of the value; in F32's denormals, and in F64's, no further than 2^-133 or 2^-1029.
struct Summary {
  TensorStats stats;            ///< of all values, or of the sample
  std::uint64_t values = 0;     ///< of the whole tensor; stats.count of them were looked at
  std::vector<Bucket> buckets;  ///< in order; only those that hold something

  /// Every value was looked at. Otherwise stats and buckets are those of stats.count values.
  [[nodiscard]] bool exact() const noexcept { return stats.count == values; }

  /// The smallest finite value that at least the share `q` of the finite values does not exceed, q in [0, 1]
  /// (numpy.quantile's method "inverted_cdf"): always a value that occurs, or, where buckets are wider, the
  /// middle of the bucket it is in. 0 and 1 are min and max. NaN when there is no finite value.
  /// Errc::invalid_argument for a `q` that is none. Reads nothing, as histogram().
  [[nodiscard]] double quantile(double q) const;

  /// `bins` parts of [min, max] that are equal after asinh(v / c), c the median size of what is not zero:
  /// nearly equal around zero, growing with the size further out, so that one bin far away does not press all
  /// others into one. A bucket that an edge cuts in two is shared by the lengths of its parts. No bins when
  /// there is no finite value; one value alone is one bin. Errc::invalid_argument for 0 bins.
  [[nodiscard]] Histogram histogram(std::size_t bins = 256) const;
};

/// Reads every value once. The same stats as stats(), by the same pass.
[[nodiscard]] Summary summary(const Tensor& tensor, const Progress& progress = {});
/// each(i, summary of tensors[i]) in order, one at a time: few of them exist at once.
void summary(std::span<const Tensor> tensors, const Function<void(std::size_t, const Summary&)>& each,
             const Progress& progress = {});

/// Of 1,024 pages of 4 kB, one from each of as many equal parts of the tensor; always the same ones. Tensors
/// of 16 MB and less are read whole.
[[nodiscard]] Summary sampled_summary(const Tensor& tensor);

/// What a cell of a picture shows of the elements it stands for. NaN is left out; where there is nothing
/// else, the cell is NaN.
enum class CellStat : std::uint8_t {
  absmax,  ///< the largest size: one outlier in a million stays visible
  mean,
  value,  ///< the one farthest from zero, with its sign
  nan,    ///< the share of NaN, 0 to 1
};

/// How two tensors become one picture.
enum class Delta : std::uint8_t {
  difference,  ///< a - b
  ratio,       ///< a / b
  sign,        ///< of a - b: -1, 0, 1
};

/// At most 256 x 256 cells, fewer at the right and lower edge.
struct Tile {
  std::int64_t width = 0;    ///< cells in a row
  std::int64_t height = 0;   ///< rows
  bool exact = true;         ///< every element of its cells was looked at
  std::uint64_t nan = 0;     ///< cells that are NaN
  float min = 0;             ///< of the finite cells; both 0 when there are none
  float max = 0;             ///< of the finite cells
  std::vector<float> cells;  ///< row by row; what a float cannot hold is its largest
};

/// What one number stands for.
enum class LineStat : std::uint8_t {
  norm,  ///< Euclidean length; NaN left out
  absmax
};

/// One number a row, or a column; of more than 4,096, the largest of each `step` neighbours.
struct Lines {
  std::int64_t step = 1;      ///< rows or columns for each number
  bool exact = true;          ///< otherwise of one row in `step`, or estimated from such rows
  std::vector<float> points;  ///< one for each
};

class Pyramid;

/// Two axes of a tensor as a picture, the other indices fixed; a vector is folded into nearly a square. A
/// complex element is its size, a quantized one its integer, an opaque one its bits. Nothing is read before
/// something is asked for; all functions may be called from several threads.
class Plane {
 public:
  /// Cells of a tile in each direction.
  static constexpr std::int64_t kTile = 256;

  /// `axes`: the one that runs down and the one that runs to the right; one alone is folded; none: the last
  /// two, or all there are. `at`: an index for every other axis, in order; none: 0 for each.
  /// Errc::invalid_argument for axes and indices that are not there.
  explicit Plane(const Tensor& tensor, const std::vector<std::int64_t>& axes = {},
                 const std::vector<std::int64_t>& at = {});
  /// Of two tensors of one shape; Errc::shape_mismatch.
  Plane(const Tensor& a, const Tensor& b, Delta delta, const std::vector<std::int64_t>& axes = {},
        const std::vector<std::int64_t>& at = {});

  /// Elements from top to bottom.
  [[nodiscard]] std::int64_t rows() const noexcept;
  /// Elements from left to right.
  [[nodiscard]] std::int64_t cols() const noexcept;
  /// Elements a row of a folded vector; its last row may be shorter.
  [[nodiscard]] std::optional<std::int64_t> fold() const noexcept;
  /// Level k has cells of 2^k x 2^k elements; at the last one everything is one tile.
  [[nodiscard]] int levels() const noexcept;
  /// Those it shows; valid as long as the plane.
  [[nodiscard]] const std::vector<std::int64_t>& axes() const noexcept;
  /// The indices of the others; valid as long as the plane.
  [[nodiscard]] const std::vector<std::int64_t>& at() const noexcept;
  /// Whether it shows every element of its tensor.
  [[nodiscard]] bool whole() const noexcept;

  /// Tile number x to the right and y down. Exact up to level 3, and where the tile shows 16 MB and less;
  /// above from some rows alone. Empty outside the picture; Errc::invalid_argument for a level below 0 or
  /// above 62.
  [[nodiscard]] Tile tile(int level, std::int64_t x, std::int64_t y, CellStat stat = CellStat::absmax) const;
  /// Axis 0: one for each row, 1: for each column. Exact where the picture shows 16 MB and less.
  [[nodiscard]] Lines lines(int axis, LineStat of) const;
  /// The elements themselves, [height, width] of the tensor's dtype (of `a`'s, where there are two): what
  /// lies outside is cut off, and missing ends of a folded row are 0.
  [[nodiscard]] Tensor elements(std::int64_t row, std::int64_t col, std::int64_t height,
                                std::int64_t width) const;

  struct Data;

 private:
  friend Pyramid pyramid(const Plane& plane, const Progress& progress, Summary* summary);
  std::shared_ptr<const Data> data_;
};

/// A plane, looked at once in whole: smallest, largest, mean and NaN of each 64 x 64 elements, and the rows'
/// and columns' norms. 16 bytes for 4,096 elements.
class Pyramid {
 public:
  static constexpr int kLevel = 6;  ///< of its blocks

  /// As Plane::tile() and lines(), and always exact: from its blocks above level 5, else from the tensor.
  [[nodiscard]] Tile tile(int level, std::int64_t x, std::int64_t y, CellStat stat = CellStat::absmax) const;
  /// As Plane::lines().
  [[nodiscard]] Lines lines(int axis, LineStat of) const;

  struct Data;

 private:
  friend Pyramid pyramid(const Plane& plane, const Progress& progress, Summary* summary);
  std::shared_ptr<const Data> data_;
};

/// Reads all of it. `summary`, when given, becomes that of the plane's tensor (of `a`, where there are two).
/// Throwing from `progress` stops the work.
[[nodiscard]] Pyramid pyramid(const Plane& plane, const Progress& progress = {}, Summary* summary = nullptr);

}  // namespace ballast

#pragma GCC visibility pop
