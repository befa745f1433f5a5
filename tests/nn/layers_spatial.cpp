// SPDX-License-Identifier: Apache-2.0
// Convolutions, pooling and what changes shapes.
#include "nn/layers.h"

namespace ballast::nn_tests {
namespace {

nn::PaddingMode padding_mode(const Json& args) {
  static const std::map<std::string, nn::PaddingMode> modes = {{"zeros", nn::PaddingMode::zeros},
                                                               {"reflect", nn::PaddingMode::reflect},
                                                               {"replicate", nn::PaddingMode::replicate},
                                                               {"circular", nn::PaddingMode::circular}};
  return modes.at(args["mode"]);
}

std::int64_t channels(const Json& args, std::size_t i) {
  return args["channels"][i].get<std::int64_t>();
}

template <class Conv, std::size_t N>
RunLayer convolution() {
  return [](const Case& one) {
    const Json& a = one.args;
    nn::Padding<N> padding = size_of<N>(a["padding"]);
    padding.same = flag(a, "same");
    return run_one_input(one, Conv(channels(a, 0), channels(a, 1), size_of<N>(a["kernel"]),
                                   {.stride = size_of<N>(a["stride"]),
                                    .padding = padding,
                                    .dilation = size_of<N>(a["dilation"]),
                                    .groups = integer(a, "groups"),
                                    .bias = flag(a, "bias"),
                                    .padding_mode = padding_mode(a)}));
  };
}

template <class Conv, std::size_t N>
RunLayer transposed() {
  return [](const Case& one) {
    const Json& a = one.args;
    return run_one_input(one, Conv(channels(a, 0), channels(a, 1), size_of<N>(a["kernel"]),
                                   {.stride = size_of<N>(a["stride"]),
                                    .padding = size_of<N>(a["padding"]),
                                    .output_padding = size_of<N>(a["output_padding"]),
                                    .dilation = size_of<N>(a["dilation"]),
                                    .groups = integer(a, "groups"),
                                    .bias = flag(a, "bias")}));
  };
}

template <class Pool, std::size_t N>
RunLayer max_pooling() {
  return [](const Case& one) {
    const Json& a = one.args;
    return run_one_input(one, Pool(size_of<N>(a["kernel_size"]), {.stride = size_of<N>(a["stride"]),
                                                                  .padding = size_of<N>(a["padding"]),
                                                                  .dilation = size_of<N>(a["dilation"]),
                                                                  .ceil_mode = flag(a, "ceil_mode")}));
  };
}

template <class Pool, std::size_t N>
RunLayer average_pooling() {
  return [](const Case& one) {
    const Json& a = one.args;
    return run_one_input(
        one, Pool(size_of<N>(a["kernel_size"]), {.stride = size_of<N>(a["stride"]),
                                                 .padding = size_of<N>(a["padding"]),
                                                 .ceil_mode = flag(a, "ceil_mode"),
                                                 .count_include_pad = flag(a, "count_include_pad")}));
  };
}

template <class Pool, std::size_t N>
RunLayer adaptive_pooling() {
  return [](const Case& one) {
    std::array<std::optional<std::int64_t>, N> size;
    for (std::size_t i = 0; i < N; ++i) {
      if (!one.args["size"][i].is_null()) size[i] = one.args["size"][i].get<std::int64_t>();
    }
    return run_one_input(one, Pool(size));
  };
}

Tensors upsample(const Case& one) {
  static const std::map<std::string, nn::UpsampleMode> modes = {{"nearest", nn::UpsampleMode::nearest},
                                                                {"linear", nn::UpsampleMode::linear},
                                                                {"bilinear", nn::UpsampleMode::bilinear},
                                                                {"bicubic", nn::UpsampleMode::bicubic},
                                                                {"trilinear", nn::UpsampleMode::trilinear}};
  const Json& a = one.args;
  nn::Upsample layer{.mode = modes.at(a["mode"]), .align_corners = flag(a, "align_corners")};
  if (a.contains("size")) layer.size = ops_tests::dims_of(a["size"]);
  if (a.contains("scale_factor")) layer.scale_factor = a["scale_factor"].get<double>();
  return run_one_input(one, layer);
}

}  // namespace

Layers spatial_layers() {
  return {
      {"Conv1d", convolution<nn::Conv1d, 1>()},
      {"Conv2d", convolution<nn::Conv2d, 2>()},
      {"Conv3d", convolution<nn::Conv3d, 3>()},
      {"ConvTranspose1d", transposed<nn::ConvTranspose1d, 1>()},
      {"ConvTranspose2d", transposed<nn::ConvTranspose2d, 2>()},
      {"ConvTranspose3d", transposed<nn::ConvTranspose3d, 3>()},
      {"MaxPool1d", max_pooling<nn::MaxPool1d, 1>()},
      {"MaxPool2d", max_pooling<nn::MaxPool2d, 2>()},
      {"MaxPool3d", max_pooling<nn::MaxPool3d, 3>()},
      {"AvgPool1d", average_pooling<nn::AvgPool1d, 1>()},
      {"AvgPool2d", average_pooling<nn::AvgPool2d, 2>()},
      {"AvgPool3d", average_pooling<nn::AvgPool3d, 3>()},
      {"AdaptiveAvgPool1d", adaptive_pooling<nn::AdaptiveAvgPool1d, 1>()},
      {"AdaptiveAvgPool2d", adaptive_pooling<nn::AdaptiveAvgPool2d, 2>()},
      {"AdaptiveAvgPool3d", adaptive_pooling<nn::AdaptiveAvgPool3d, 3>()},
      {"AdaptiveMaxPool1d", adaptive_pooling<nn::AdaptiveMaxPool1d, 1>()},
      {"AdaptiveMaxPool2d", adaptive_pooling<nn::AdaptiveMaxPool2d, 2>()},
      {"AdaptiveMaxPool3d", adaptive_pooling<nn::AdaptiveMaxPool3d, 3>()},
      {"Flatten",
       [](const Case& one) {
         return run_one_input(one, nn::Flatten{integer(one.args, "start"), integer(one.args, "end")});
       }},
      {"Upsample", upsample},
  };
}

}  // namespace ballast::nn_tests
