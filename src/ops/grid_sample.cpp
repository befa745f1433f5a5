// SPDX-License-Identifier: Apache-2.0
// Values of an image at the places of a grid.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/resize.h"
#include "ops/args.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {
namespace {

// One dimension of the image, and how a grid's number becomes a place in it.
struct GridAxis {
  std::int64_t size;
  GridPadding padding;
  bool align_corners;

  [[nodiscard]] double mirrored(double place) const {
    const double low = align_corners ? 0 : -0.5;
    const double span = align_corners ? static_cast<double>(size - 1) : static_cast<double>(size);
    if (span == 0) return 0;
    const double distance = std::abs(place - low);
    const double over = std::fmod(distance, span);
    return std::fmod(std::floor(distance / span), 2) == 0 ? over + low : span - over + low;
  }

  [[nodiscard]] double inside(double place) const {
    if (padding == GridPadding::zeros) return place;
    if (padding == GridPadding::reflection) place = mirrored(place);
    const auto last = static_cast<double>(size - 1);
    return std::isnan(place) ? -1 : std::clamp(place, 0.0, last);  // NaN is nowhere
  }

  [[nodiscard]] double place(double number) const {
    const auto n = static_cast<double>(size);
    return align_corners ? (number + 1) / 2 * (n - 1) : ((number + 1) * n - 1) / 2;
  }

  /// Of a whole place: where to read, -1 for nowhere.
  [[nodiscard]] std::int64_t read_at(double whole) const {
    if (!(whole >= 0) || whole > static_cast<double>(size - 1)) return -1;
    return static_cast<std::int64_t>(whole);
  }
};

struct GridTaps {
  std::array<std::int64_t, 4> at{};
  std::array<double, 4> weight{};
  std::size_t count = 0;

  void add(std::int64_t place, double amount) {
    at[count] = place;
    weight[count++] = amount;
  }
};

double grid_cubic(double d) {
  const double a = -0.75;
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

GridTaps taps_of(const GridAxis& axis, double number, GridMode mode) {
  GridTaps taps;
  double place = axis.place(number);
  if (mode == GridMode::cubic) {  // each of its four is brought inside on its own
    const double first = std::floor(place);
    for (int i = -1; i <= 2; ++i)
      taps.add(axis.read_at(std::nearbyint(axis.inside(first + i))), grid_cubic(place - first - i));
    return taps;
  }
  place = axis.inside(place);
  if (mode == GridMode::nearest) {
    taps.add(axis.read_at(std::nearbyint(place)), 1);
    return taps;
  }
  const double first = std::floor(place);
  taps.add(axis.read_at(first), 1 - (place - first));
  taps.add(axis.read_at(first + 1), place - first);
  return taps;
}

struct GridShapes {
  std::int64_t batch;
  std::int64_t channels;
  std::array<std::int64_t, 3> in;  // depth (1 for images), height, width
  std::int64_t points;             // of the grid, for each batch
  std::size_t spatial;
};

// x [batch, channels, in…] at every point, for rows of points.
template <class T>
void sample_points(const GridShapes& s, const T* x, const double* grid, GridMode mode, GridPadding padding,
                   bool align_corners, T* out) {
  const std::int64_t image = s.in[0] * s.in[1] * s.in[2];
  ops::parallel(
      s.batch * s.points, ops::rows_per_thread(s.channels * 8), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          std::array<GridTaps, 3> taps;  // depth, height, width; a grid has them the other way round
          taps[0].add(0, 1);
          for (std::size_t k = 0; k < s.spatial; ++k)
            taps[2 - k] = taps_of(
                {s.in[2 - k], padding, align_corners},
                grid[row * static_cast<std::int64_t>(s.spatial) + static_cast<std::int64_t>(k)], mode);
          const std::int64_t batch = row / s.points;
          for (std::int64_t c = 0; c < s.channels; ++c) {
            const T* from = x + (batch * s.channels + c) * image;
            double sum = 0;
            for (std::size_t d = 0; d < taps[0].count; ++d)
              for (std::size_t h = 0; h < taps[1].count; ++h)
                for (std::size_t w = 0; w < taps[2].count; ++w) {
                  if (taps[0].at[d] < 0 || taps[1].at[h] < 0 || taps[2].at[w] < 0) continue;
                  sum += static_cast<double>(
                             from[(taps[0].at[d] * s.in[1] + taps[1].at[h]) * s.in[2] + taps[2].at[w]]) *
                         taps[0].weight[d] * taps[1].weight[h] * taps[2].weight[w];
                }
            out[(batch * s.channels + c) * s.points + row % s.points] = static_cast<T>(sum);
          }
        }
      });
}

void check_grid(const char* op, const Tensor& x, const Tensor& grid, GridMode mode) {
  const std::size_t rank = x.rank();
  if ((rank != 4 && rank != 5) || grid.rank() != rank || grid.shape()[0] != x.shape()[0] ||
      grid.shape()[rank - 1] != static_cast<std::int64_t>(rank) - 2)
    fail(Errc::shape_mismatch, op, "{} at the places of {}", ops::form(x), ops::form(grid));
  if (x.dtype() != grid.dtype() || !is_floating(x.dtype()))
    fail(Errc::bad_dtype, op, "{} at the places of {}: one floating dtype is wanted", ops::form(x),
         ops::form(grid));
  if (ops::product(x.shape(), 2, rank) == 0) fail(Errc::shape_mismatch, op, "{} has no places", ops::form(x));
  if (mode == GridMode::cubic && rank == 5)
    fail(Errc::unsupported, op, "cubic is for images, {} has a depth", ops::form(x));
}

Tensor grid_sample_cpu(const Operation& op, const Tensor& x, const Tensor& grid, GridMode mode,
                       GridPadding padding, bool align_corners) {
  check_grid(op.name, x, grid, mode);
  ops::require_computable(op.name, x);
  const std::size_t rank = x.rank();
  GridShapes s{x.shape()[0], x.shape()[1], {1, 1, 1}, ops::product(grid.shape(), 1, rank - 1), rank - 2};
  Shape shape = {s.batch, s.channels};
  for (std::size_t i = 2; i < rank; ++i) {
    s.in[i + 5 - rank - 2] = x.shape()[i];
    shape.push_back(grid.shape()[i - 1]);
  }
  const DType wide = ops::compute_dtype(x.dtype());
  const Tensor in = ops::dense(x.to(wide));
  const Tensor places = ops::dense(grid.to(DType::f64));
  Tensor out = ops::new_tensor(wide, shape);
  if (out.numel() == 0) return out.to(x.dtype());
  const double* at = places.span<double>().data();
  if (wide == DType::f64)
    sample_points(s, in.span<double>().data(), at, mode, padding, align_corners,
                  reinterpret_cast<double*>(out.mutable_data()));
  else
    sample_points(s, in.span<float>().data(), at, mode, padding, align_corners, ops::data_of(out));
  return out.to(x.dtype());
}

// Middles of `size` equal parts of [-1, 1], or with align_corners as many points from end to end.
Tensor grid_line(std::int64_t size, bool align_corners) {
  if (align_corners) return size > 1 ? linspace(-1, 1, size) : zeros({size});
  const Tensor numbers = arange(0, size).to(DType::f32);
  return sub(div(add(mul(numbers, 2), 1), size), 1);
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const Tensor&, GridMode, GridPadding, bool)> grid_sample = {
    about("grid_sample", {"x", "grid"}, {"mode", "padding", "align_corners"}, forms::grid_sample),
    {grid_sample_cpu}};

}  // namespace operations

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleArgs& args) {
  return run(operations::grid_sample, x, grid, args.mode, args.padding, args.align_corners);
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
  const std::size_t spatial = size.size() - 2;
  const auto n = static_cast<std::int64_t>(spatial);
  if ((size.size() != 4 && size.size() != 5) || theta.rank() != 3 || theta.shape()[0] != size[0] ||
      theta.shape()[1] != n || theta.shape()[2] != n + 1)
    fail(Errc::shape_mismatch, "affine_grid", "theta {} for {}", ops::form(theta), to_string(size));
  Shape places;
  for (std::size_t i = 0; i < spatial; ++i) places.push_back(size[2 + i]);
  Shape shape = {size[0]};
  for (const std::int64_t place : places) shape.push_back(place);
  shape.push_back(n);
  static_cast<void>(Tensor(theta.dtype(), shape));  // refuses what cannot be, before any line of it is made
  std::vector<Tensor> coordinates;                  // x first, which is the last dimension
  for (std::size_t i = 0; i < spatial; ++i) {
    Shape alone = Dims::filled(spatial, 1);
    alone[spatial - 1 - i] = places[spatial - 1 - i];
    coordinates.push_back(grid_line(alone[spatial - 1 - i], align_corners).reshape(alone).expand(places));
  }
  coordinates.push_back(ones(places));
  const Tensor base = stack(coordinates, -1).reshape({1, -1, n + 1}).expand({size[0], -1, n + 1});
  return matmul(base.to(theta.dtype()), theta.t()).reshape(shape);
}

}  // namespace ballast
