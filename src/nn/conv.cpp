// SPDX-License-Identifier: Apache-2.0
#include "ballast/nn/conv.h"

#include "ballast/display.h"
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

}  // namespace

template <std::size_t N>
Conv<N>::Conv(std::int64_t in, std::int64_t out, Size<N> kernel_sizes, const ConvOptions<N>& conv_options)
    : in_channels(in), out_channels(out), kernel_size(kernel_sizes), options(conv_options) {
  require_groups("Conv", in, out, options.groups);
  weight = kernel(out, in / options.groups, kernel_size);
  if (options.bias) bias = parameter({out});
}

template <std::size_t N>
ConvTranspose<N>::ConvTranspose(std::int64_t in, std::int64_t out, Size<N> kernel_sizes,
                                const ConvTransposeOptions<N>& conv_options)
    : in_channels(in), out_channels(out), kernel_size(kernel_sizes), options(conv_options) {
  require_groups("ConvTranspose", in, out, options.groups);
  weight = kernel(in, out / options.groups, kernel_size);
  if (options.bias) bias = parameter({out});
}

template struct Conv<1>;
template struct Conv<2>;
template struct Conv<3>;
template struct ConvTranspose<1>;
template struct ConvTranspose<2>;
template struct ConvTranspose<3>;

}  // namespace ballast::nn
