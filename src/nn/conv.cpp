// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/conv.h"

#include "ballast/detail/ops/conv.h"
#include "ballast/error.h"
#include "nn/parameters.h"

namespace ballast::nn {

bool detail::padding_is_same(std::string_view name) {
  if (name != "same" && name != "valid")
    fail(Errc::invalid_argument, "padding", R"({} is neither "same" nor "valid")", quoted(name));
  return name == "same";
}

namespace {

template <std::size_t N>
Tensor kernel(std::int64_t first, std::int64_t second, const Size<N>& size) {
  Shape shape{first, second};
  for (const std::int64_t extent : size) shape.push_back(extent);
  return parameter(std::move(shape));
}

void require_groups(const char* layer, std::int64_t in, std::int64_t out, std::int64_t groups) {
  require_positive(layer, "groups", groups);
  if (in % groups != 0 || out % groups != 0) {
    fail(Errc::invalid_argument, layer, "{} channels in and {} out cannot be split into {} groups", in, out,
         groups);
  }
}

PadMode pad_mode(PaddingMode mode) {
  switch (mode) {
    case PaddingMode::reflect:
      return PadMode::reflect;
    case PaddingMode::replicate:
      return PadMode::replicate;
    case PaddingMode::circular:
      return PadMode::circular;
    case PaddingMode::zeros:
      break;
  }
  return PadMode::constant;
}

template <std::size_t N>
constexpr const char* kConvName = N == 1 ? "Conv1d" : (N == 2 ? "Conv2d" : "Conv3d");
template <std::size_t N>
constexpr const char* kTransposeName = N == 1 ? "ConvTranspose1d"
                                              : (N == 2 ? "ConvTranspose2d" : "ConvTranspose3d");

}  // namespace

template <std::size_t N>
Conv<N>::Conv(std::int64_t in, std::int64_t out, Size<N> kernel_sizes, const ConvOptions<N>& conv_options)
    : in_channels(in), out_channels(out), kernel_size(kernel_sizes), options(conv_options) {
  require_groups("Conv", in, out, options.groups);
  if (options.output_padding != Size<N>(0))
    fail(Errc::invalid_argument, "Conv", "output_padding is for transposed convolutions");
  weight = kernel(out, in / options.groups, kernel_size);
  if (options.bias) bias = parameter({out});
}

template <std::size_t N>
Tensor Conv<N>::forward(const Tensor& x, Activation activation) const {
  return place.run(kConvName<N>, [&] {
    return conv(x, weight, bias,
                {.stride = dims_of(options.stride),
                 .padding = dims_of(options.padding.amount),
                 .same = options.padding.same,
                 .dilation = dims_of(options.dilation),
                 .groups = options.groups,
                 .padding_mode = pad_mode(options.padding_mode),
                 .activation = activation,
                 .cache = &place.cache});
  });
}

template <std::size_t N>
ConvTranspose<N>::ConvTranspose(std::int64_t in, std::int64_t out, Size<N> kernel_sizes,
                                const ConvOptions<N>& conv_options)
    : in_channels(in), out_channels(out), kernel_size(kernel_sizes), options(conv_options) {
  require_groups("ConvTranspose", in, out, options.groups);
  if (options.padding.same || options.padding_mode != PaddingMode::zeros)
    fail(Errc::invalid_argument, "ConvTranspose",
         "padding is a number of zeros here, no \"same\" and no mode");
  weight = kernel(in, out / options.groups, kernel_size);
  if (options.bias) bias = parameter({out});
}

template <std::size_t N>
Tensor ConvTranspose<N>::forward(const Tensor& x, Activation activation) const {
  return place.run(kTransposeName<N>, [&] {
    return conv_transpose(x, weight, bias,
                          {.stride = dims_of(options.stride),
                           .padding = dims_of(options.padding.amount),
                           .output_padding = dims_of(options.output_padding),
                           .dilation = dims_of(options.dilation),
                           .groups = options.groups,
                           .activation = activation,
                           .cache = &place.cache});
  });
}

template struct Conv<1>;
template struct Conv<2>;
template struct Conv<3>;
template struct ConvTranspose<1>;
template struct ConvTranspose<2>;
template struct ConvTranspose<3>;

}  // namespace ballast::nn
