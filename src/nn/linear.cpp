// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/linear.h"

#include "ballast/detail/ops/matmul.h"
#include "nn/parameters.h"

namespace ballast::nn {

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& linear_options)
    : in_features(in), out_features(out), options(linear_options), weight(parameter({in, out})) {
  if (options.bias) bias = parameter({out});
}

std::vector<Linear> Linear::without_sizes() {
  std::vector<Linear> layers = {{0, 0}, {0, 0, {.bias = false}}};
  for (Linear& layer : layers) layer.weight = layer.bias = {};
  return layers;
}

bool Linear::take_sizes(std::span<const Shape> shapes) {
  if (shapes[0].size() != 2) return false;
  *this = Linear(shapes[0][0], shapes[0][1], options);
  return true;
}

Tensor Linear::forward(const Tensor& x, Activation activation) const {
  return place.run(
      "Linear", [&] { return linear(x, weight, bias, {.activation = activation, .cache = &place.cache}); });
}

Bilinear::Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out,
                   const LinearOptions& bilinear_options)
    : in1_features(in1),
      in2_features(in2),
      out_features(out),
      options(bilinear_options),
      weight(parameter({out, in1, in2})) {
  if (options.bias) bias = parameter({out});
}

std::vector<Bilinear> Bilinear::without_sizes() {
  std::vector<Bilinear> layers = {{0, 0, 0}, {0, 0, 0, {.bias = false}}};
  for (Bilinear& layer : layers) layer.weight = layer.bias = {};
  return layers;
}

bool Bilinear::take_sizes(std::span<const Shape> shapes) {
  if (shapes[0].size() != 3) return false;
  *this = Bilinear(shapes[0][1], shapes[0][2], shapes[0][0], options);
  return true;
}

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) const {
  return place.run("Bilinear", [&] { return bilinear(x1, x2, weight, bias); });
}

}  // namespace ballast::nn
