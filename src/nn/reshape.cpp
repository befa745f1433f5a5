// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/reshape.h"

#include "nn/parameters.h"

namespace ballast::nn {
namespace {

// Of an Unfold or a Fold.
UnfoldArgs unfold_args(const auto& layer) {
  return {.dilation = dims_of(layer.dilation),
          .padding = dims_of(layer.padding),
          .stride = dims_of(layer.stride)};
}

}  // namespace

template <std::size_t N>
Tensor PadLayer<N>::forward(const Tensor& x) const {
  return place.run("Pad", [&] {
    if (x.rank() != N + 1 && x.rank() != N + 2 && mode != PadMode::constant)
      fail(Errc::shape_mismatch, "pad", "{} has not the {} dimensions the layer is for", to_string(x.shape()),
           N);
    return pad(x, dims_of(padding), mode, value);
  });
}

Tensor PixelShuffle::forward(const Tensor& x) const {
  return place.run("PixelShuffle", [&] { return pixel_shuffle(x, upscale_factor); });
}

Tensor PixelUnshuffle::forward(const Tensor& x) const {
  return place.run("PixelUnshuffle", [&] { return pixel_unshuffle(x, downscale_factor); });
}

Tensor ChannelShuffle::forward(const Tensor& x) const {
  return place.run("ChannelShuffle", [&] { return channel_shuffle(x, groups); });
}

Tensor Unflatten::forward(const Tensor& x) const {
  return place.run("Unflatten", [&] { return unflatten(x, dim, unflattened_size); });
}

Tensor Unfold::forward(const Tensor& x) const {
  return place.run("Unfold", [&] { return unfold(x, dims_of(kernel_size), unfold_args(*this)); });
}

Tensor Fold::forward(const Tensor& x) const {
  return place.run("Fold",
                   [&] { return fold(x, dims_of(output_size), dims_of(kernel_size), unfold_args(*this)); });
}

template struct PadLayer<1>;
template struct PadLayer<2>;
template struct PadLayer<3>;

}  // namespace ballast::nn
