// SPDX-License-Identifier: Apache-2.0
// Convolutions. Weights as in PyTorch: [out, in / groups, kernel…], transposed ones [in, out / groups,
// kernel…].
//
// Gives: forward() [batch, out, size…], without batch where x has none. Throws: constructors
// Errc::invalid_argument for groups that do not divide the channels, and a padding by a name other than
// "same" and "valid"; forward() what conv() and conv_transpose() throw.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/detail/nn/place.h"
#include "ballast/detail/nn/size.h"
#include "ballast/detail/ops/activation.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

/// Of convolutions and transposed ones; what one of them does not know is Errc::invalid_argument when it is
/// made.
template <std::size_t N>
struct ConvOptions {
  Size<N> stride = 1;
  Padding<N> padding = 0;      ///< "same", too, but for transposed ones
  Size<N> output_padding = 0;  ///< transposed ones
  Size<N> dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;  ///< transposed ones: zeros
};

/// Convolutions of N dimensions: what Conv1d, Conv2d and Conv3d are.
template <std::size_t N>
struct Conv {
  static constexpr LayerKind kind = LayerKind::conv;
  std::int64_t in_channels;
  std::int64_t out_channels;
  Size<N> kernel_size;
  ConvOptions<N> options;
  Tensor weight;  ///< [out, in / groups, kernel…]
  Tensor bias;    ///< [out], undefined without
  Place place;

  Conv(std::int64_t in, std::int64_t out, Size<N> kernel, const ConvOptions<N>& options = {});

  /// x [batch, in, size…] or [in, size…], with the activation applied to the result.
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) {
    visit("weight", self.weight);
    if (self.options.bias) visit("bias", self.bias);
  }
};

struct Conv1d : Conv<1> {
  using Conv<1>::Conv;
};

struct Conv2d : Conv<2> {
  using Conv<2>::Conv;
};

struct Conv3d : Conv<3> {
  using Conv<3>::Conv;
};

/// What ConvTranspose1d, ConvTranspose2d and ConvTranspose3d are.
template <std::size_t N>
struct ConvTranspose {
  static constexpr LayerKind kind = LayerKind::conv_transpose;
  std::int64_t in_channels;
  std::int64_t out_channels;
  Size<N> kernel_size;
  ConvOptions<N> options;
  Tensor weight;  ///< [in, out / groups, kernel…]
  Tensor bias;    ///< [out], undefined without
  Place place;

  ConvTranspose(std::int64_t in, std::int64_t out, Size<N> kernel, const ConvOptions<N>& options = {});

  /// x [batch, in, size…] or [in, size…], with the activation applied to the result.
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation = {}) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  static constexpr void visit_fields(auto& self, auto&& visit) {
    visit("weight", self.weight);
    if (self.options.bias) visit("bias", self.bias);
  }
};

struct ConvTranspose1d : ConvTranspose<1> {
  using ConvTranspose<1>::ConvTranspose;
};

struct ConvTranspose2d : ConvTranspose<2> {
  using ConvTranspose<2>::ConvTranspose;
};

struct ConvTranspose3d : ConvTranspose<3> {
  using ConvTranspose<3>::ConvTranspose;
};

extern template struct Conv<1>;
extern template struct Conv<2>;
extern template struct Conv<3>;
extern template struct ConvTranspose<1>;
extern template struct ConvTranspose<2>;
extern template struct ConvTranspose<3>;

}  // namespace ballast::nn

#pragma GCC visibility pop
