// SPDX-License-Identifier: Apache-2.0
// Pooling, and layers that only change a shape.
//
// Takes x [batch, channels, size…], pools also without batch. Gives: forward() the same with other sizes
// (Flatten: with several dimensions made one). Throws: constructors Errc::invalid_argument for options of
// another kind of pool; forward() what the functions of detail/ops/pool.h and resize() throw, shape_mismatch
// for an x of other dimensions than the layer is for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/nn/size.h"
#include "ballast/detail/ops/pool.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

/// Of all pools and of MaxUnpool; what one of them does not know is Errc::invalid_argument when it is made.
template <std::size_t N>
struct PoolOptions {
  Stride<N> stride = {};                              ///< the kernel's size when none is said
  Size<N> padding = 0;                                ///< all but LPPool
  Size<N> dilation = 1;                               ///< max pools
  bool ceil_mode = false;                             ///< all but MaxUnpool
  bool count_include_pad = true;                      ///< average pools
  std::optional<std::int64_t> divisor_override = {};  ///< average pools
};

/// What MaxPool1d, MaxPool2d and MaxPool3d are.
template <std::size_t N>
struct MaxPool {
  Size<N> kernel_size;
  PoolOptions<N> options;
  Place place;

  MaxPool(Size<N> kernel, const PoolOptions<N>& pool_options = {});

  [[nodiscard]] Tensor forward(const Tensor& x) const;
  /// PyTorch's return_indices: what MaxUnpool takes.
  [[nodiscard]] MaxPooled with_indices(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct MaxPool1d : MaxPool<1> {
  using MaxPool<1>::MaxPool;
};

struct MaxPool2d : MaxPool<2> {
  using MaxPool<2>::MaxPool;
};

struct MaxPool3d : MaxPool<3> {
  using MaxPool<3>::MaxPool;
};

/// What MaxUnpool1d, MaxUnpool2d and MaxUnpool3d are.
template <std::size_t N>
struct MaxUnpool {
  Size<N> kernel_size;
  PoolOptions<N> options;
  Place place;

  MaxUnpool(Size<N> kernel, const PoolOptions<N>& unpool_options = {});

  /// `output_size`: of the image, its spatial dimensions; the smallest that can have been pooled when empty.
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& indices, const Dims& output_size = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct MaxUnpool1d : MaxUnpool<1> {
  using MaxUnpool<1>::MaxUnpool;
};

struct MaxUnpool2d : MaxUnpool<2> {
  using MaxUnpool<2>::MaxUnpool;
};

struct MaxUnpool3d : MaxUnpool<3> {
  using MaxUnpool<3>::MaxUnpool;
};

/// What LPPool1d and LPPool2d are.
template <std::size_t N>
struct LPPool {
  double norm_type;
  Size<N> kernel_size;
  PoolOptions<N> options;
  Place place;

  LPPool(double norm, Size<N> kernel, const PoolOptions<N>& pool_options = {});

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct LPPool1d : LPPool<1> {
  using LPPool<1>::LPPool;
};

struct LPPool2d : LPPool<2> {
  using LPPool<2>::LPPool;
};

/// What AvgPool1d, AvgPool2d and AvgPool3d are.
template <std::size_t N>
struct AvgPool {
  Size<N> kernel_size;
  PoolOptions<N> options;
  Place place;

  AvgPool(Size<N> kernel, const PoolOptions<N>& pool_options = {});

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct AvgPool1d : AvgPool<1> {
  using AvgPool<1>::AvgPool;
};

struct AvgPool2d : AvgPool<2> {
  using AvgPool<2>::AvgPool;
};

struct AvgPool3d : AvgPool<3> {
  using AvgPool<3>::AvgPool;
};

/// What the adaptive pools are. An absent output size keeps the input's in that dimension.
template <std::size_t N>
struct AdaptivePool {
  std::array<std::optional<std::int64_t>, N> output_size;
  Place place;

  /// The same size in every dimension.
  AdaptivePool(std::int64_t all) { output_size.fill(all); }

  /// A size for each dimension.
  AdaptivePool(const std::array<std::optional<std::int64_t>, N>& each) : output_size(each) {}

  /// adaptive_avg_pool() of x.
  [[nodiscard]] Tensor average(const Tensor& x) const;
  /// adaptive_max_pool() of x.
  [[nodiscard]] Tensor maximum(const Tensor& x) const;

  BALLAST_FIELDS();
};

struct AdaptiveAvgPool1d : AdaptivePool<1> {
  using AdaptivePool<1>::AdaptivePool;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return average(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct AdaptiveAvgPool2d : AdaptivePool<2> {
  using AdaptivePool<2>::AdaptivePool;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return average(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct AdaptiveAvgPool3d : AdaptivePool<3> {
  using AdaptivePool<3>::AdaptivePool;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return average(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct AdaptiveMaxPool1d : AdaptivePool<1> {
  using AdaptivePool<1>::AdaptivePool;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return maximum(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct AdaptiveMaxPool2d : AdaptivePool<2> {
  using AdaptivePool<2>::AdaptivePool;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return maximum(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct AdaptiveMaxPool3d : AdaptivePool<3> {
  using AdaptivePool<3>::AdaptivePool;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return maximum(x); }

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

struct Flatten {
  std::int64_t start_dim = 1;
  std::int64_t end_dim = -1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// PyTorch's names; all but nearest are linear or cubic by the number of dimensions.
enum class UpsampleMode : std::uint8_t { nearest, linear, bilinear, bicubic, trilinear };

struct Upsample {
  std::optional<Shape> size = {};
  std::optional<double> scale_factor = {};
  UpsampleMode mode = UpsampleMode::nearest;
  bool align_corners = false;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

extern template struct MaxPool<1>;
extern template struct MaxPool<2>;
extern template struct MaxPool<3>;
extern template struct AvgPool<1>;
extern template struct AvgPool<2>;
extern template struct AvgPool<3>;
extern template struct AdaptivePool<1>;
extern template struct AdaptivePool<2>;
extern template struct AdaptivePool<3>;

}  // namespace ballast::nn

#pragma GCC visibility pop
