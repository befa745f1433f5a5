// SPDX-License-Identifier: Apache-2.0
// Layers without parameters that move elements: padding, shuffles, patches. Padding is in PyTorch's order,
// {left, right, top, bottom, front, back}, or one number for all.
//
// Gives: forward() the elements of x in another shape, as the function of detail/ops/movement.h says. Throws:
// forward() what the functions of detail/ops/movement.h throw: Errc::shape_mismatch for an x of other
// dimensions than the layer is for, bad_dtype, invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/nn/size.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

/// What the layers below are: pad() with these amounts.
template <std::size_t N>
struct PadLayer {
  Size<2 * N> padding;  ///< in PyTorch's order
  PadMode mode;         ///< what is put there
  double value;         ///< of PadMode::constant
  Place place = {};

  /// With these amounts; checked by forward().
  PadLayer(Size<2 * N> amounts, PadMode pad_mode, double filling = 0)
      : padding(amounts), mode(pad_mode), value(filling) {}

  /// x of N spatial dimensions, with or without batch, padded.
  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

template <std::size_t N>
struct ReflectionPad : PadLayer<N> {
  ReflectionPad(Size<2 * N> amounts) : PadLayer<N>(amounts, PadMode::reflect) {}
};

template <std::size_t N>
struct ReplicationPad : PadLayer<N> {
  ReplicationPad(Size<2 * N> amounts) : PadLayer<N>(amounts, PadMode::replicate) {}
};

template <std::size_t N>
struct CircularPad : PadLayer<N> {
  CircularPad(Size<2 * N> amounts) : PadLayer<N>(amounts, PadMode::circular) {}
};

template <std::size_t N>
struct ZeroPad : PadLayer<N> {
  ZeroPad(Size<2 * N> amounts) : PadLayer<N>(amounts, PadMode::constant) {}
};

template <std::size_t N>
struct ConstantPad : PadLayer<N> {
  ConstantPad(Size<2 * N> amounts, double filling) : PadLayer<N>(amounts, PadMode::constant, filling) {}
};

using ReflectionPad1d = ReflectionPad<1>;
using ReflectionPad2d = ReflectionPad<2>;
using ReflectionPad3d = ReflectionPad<3>;
using ReplicationPad1d = ReplicationPad<1>;
using ReplicationPad2d = ReplicationPad<2>;
using ReplicationPad3d = ReplicationPad<3>;
using CircularPad1d = CircularPad<1>;
using CircularPad2d = CircularPad<2>;
using CircularPad3d = CircularPad<3>;
using ZeroPad1d = ZeroPad<1>;
using ZeroPad2d = ZeroPad<2>;
using ZeroPad3d = ZeroPad<3>;
using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;

struct PixelShuffle {
  std::int64_t upscale_factor;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct PixelUnshuffle {
  std::int64_t downscale_factor;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct ChannelShuffle {
  std::int64_t groups;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// One dimension made several.
struct Unflatten {
  std::int64_t dim;
  Dims unflattened_size;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// Patches of an image: [batch, channels, height, width] → [batch, channels * kernel, places].
struct Unfold {
  Size<2> kernel_size;
  Size<2> dilation = 1;
  Size<2> padding = 0;
  Size<2> stride = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// Patches summed into an image of `output_size`.
struct Fold {
  Size<2> output_size;
  Size<2> kernel_size;
  Size<2> dilation = 1;
  Size<2> padding = 0;
  Size<2> stride = 1;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

extern template struct PadLayer<1>;
extern template struct PadLayer<2>;
extern template struct PadLayer<3>;

}  // namespace ballast::nn

#pragma GCC visibility pop
