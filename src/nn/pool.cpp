// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/pool.h"

#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/pool.h"
#include "ballast/detail/ops/resize.h"
#include "nn/parameters.h"

namespace ballast::nn {
namespace {

template <std::size_t N>
Dims dims_of(const std::array<std::optional<std::int64_t>, N>& sizes) {
  Dims dims;
  for (const auto& size : sizes) dims.push_back(size.value_or(-1));
  return dims;
}

// The number of spatial dimensions an interpolation is made for; 0 for any.
std::size_t spatial_of(UpsampleMode mode) {
  switch (mode) {
    case UpsampleMode::linear:
      return 1;
    case UpsampleMode::bilinear:
    case UpsampleMode::bicubic:
      return 2;
    case UpsampleMode::trilinear:
      return 3;
    case UpsampleMode::nearest:
      break;
  }
  return 0;
}

ResizeMode resize_mode(UpsampleMode mode) {
  if (mode == UpsampleMode::nearest) return ResizeMode::nearest;
  return mode == UpsampleMode::bicubic ? ResizeMode::cubic : ResizeMode::linear;
}

}  // namespace

namespace {

template <std::size_t N>
void require_no_average(const char* layer, const PoolOptions<N>& options) {
  if (!options.count_include_pad || options.divisor_override)
    fail(Errc::invalid_argument, layer, "count_include_pad and divisor_override are for average pools");
}

template <std::size_t N>
void require_no_dilation(const char* layer, const PoolOptions<N>& options) {
  if (options.dilation != Size<N>(1)) fail(Errc::invalid_argument, layer, "dilation is for max pools");
}

}  // namespace

template <std::size_t N>
MaxPool<N>::MaxPool(Size<N> kernel, const PoolOptions<N>& pool_options)
    : kernel_size(kernel), options(pool_options) {
  require_no_average("MaxPool", options);
}

template <std::size_t N>
MaxUnpool<N>::MaxUnpool(Size<N> kernel, const PoolOptions<N>& unpool_options)
    : kernel_size(kernel), options(unpool_options) {
  require_no_average("MaxUnpool", options);
  require_no_dilation("MaxUnpool", options);
  if (options.ceil_mode) fail(Errc::invalid_argument, "MaxUnpool", "ceil_mode is for pools");
}

template <std::size_t N>
LPPool<N>::LPPool(double norm, Size<N> kernel, const PoolOptions<N>& pool_options)
    : norm_type(norm), kernel_size(kernel), options(pool_options) {
  require_no_average("LPPool", options);
  require_no_dilation("LPPool", options);
  if (options.padding != Size<N>(0))
    fail(Errc::invalid_argument, "LPPool", "padding is for max and average pools");
}

template <std::size_t N>
AvgPool<N>::AvgPool(Size<N> kernel, const PoolOptions<N>& pool_options)
    : kernel_size(kernel), options(pool_options) {
  require_no_dilation("AvgPool", options);
}

namespace {

template <std::size_t N>
MaxPoolArgs max_pool_args(const MaxPool<N>& layer) {
  return {.stride = dims_of(layer.options.stride.value_or(layer.kernel_size)),
          .padding = dims_of(layer.options.padding),
          .dilation = dims_of(layer.options.dilation),
          .ceil_mode = layer.options.ceil_mode};
}

}  // namespace

template <std::size_t N>
Tensor MaxPool<N>::forward(const Tensor& x) const {
  return place.run("MaxPool", [&] { return max_pool(x, dims_of(kernel_size), max_pool_args(*this)); });
}

template <std::size_t N>
MaxPooled MaxPool<N>::with_indices(const Tensor& x) const {
  return place.run("MaxPool",
                   [&] { return max_pool_with_indices(x, dims_of(kernel_size), max_pool_args(*this)); });
}

template <std::size_t N>
Tensor MaxUnpool<N>::forward(const Tensor& x, const Tensor& indices, const Dims& output_size) const {
  return place.run("MaxUnpool", [&] {
    return max_unpool(x, indices, dims_of(kernel_size),
                      {.stride = dims_of(options.stride.value_or(kernel_size)),
                       .padding = dims_of(options.padding),
                       .output_size = output_size});
  });
}

template <std::size_t N>
Tensor LPPool<N>::forward(const Tensor& x) const {
  return place.run("LPPool", [&] {
    return lp_pool(x, norm_type, dims_of(kernel_size),
                   {.stride = dims_of(options.stride.value_or(kernel_size)), .ceil_mode = options.ceil_mode});
  });
}

template <std::size_t N>
Tensor AvgPool<N>::forward(const Tensor& x) const {
  return place.run("AvgPool", [&] {
    return avg_pool(x, dims_of(kernel_size),
                    {.stride = dims_of(options.stride.value_or(kernel_size)),
                     .padding = dims_of(options.padding),
                     .ceil_mode = options.ceil_mode,
                     .count_include_pad = options.count_include_pad,
                     .divisor_override = options.divisor_override});
  });
}

template <std::size_t N>
Tensor AdaptivePool<N>::average(const Tensor& x) const {
  return place.run("AdaptiveAvgPool", [&] { return adaptive_avg_pool(x, dims_of(output_size)); });
}

template <std::size_t N>
Tensor AdaptivePool<N>::maximum(const Tensor& x) const {
  return place.run("AdaptiveMaxPool", [&] { return adaptive_max_pool(x, dims_of(output_size)); });
}

Tensor Flatten::forward(const Tensor& x) const {
  return place.run("Flatten", [&] { return flatten(x, start_dim, end_dim); });
}

Tensor Upsample::forward(const Tensor& x) const {
  return place.run("Upsample", [&] {
    const std::size_t spatial = spatial_of(mode);
    if (spatial != 0 && x.rank() != spatial + 2)
      fail(Errc::shape_mismatch, "resize", "{} has not the {} spatial dimensions the mode is for",
           to_string(x.shape()), spatial);
    return resize(x, {.size = size.value_or(Shape{}),
                      .scale = scale_factor ? std::vector<double>{*scale_factor} : std::vector<double>{},
                      .mode = resize_mode(mode),
                      .align_corners = align_corners});
  });
}

template struct MaxPool<1>;
template struct MaxPool<2>;
template struct MaxPool<3>;
template struct MaxUnpool<1>;
template struct MaxUnpool<2>;
template struct MaxUnpool<3>;
template struct LPPool<1>;
template struct LPPool<2>;
template struct AvgPool<1>;
template struct AvgPool<2>;
template struct AvgPool<3>;
template struct AdaptivePool<1>;
template struct AdaptivePool<2>;
template struct AdaptivePool<3>;

}  // namespace ballast::nn
