// SPDX-License-Identifier: Apache-2.0
// ReLU and ReLU6 inside a convolution, beside the same functions after it: every kind of convolution, with
// one value anywhere that is NaN, infinite, or so large that sums overflow, in one layer and in the next.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ballast/ops.h"

namespace ballast {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Layer {
  Tensor weight;
  Tensor bias;
  ConvArgs args;
};

Layer layer(Generator& generator, std::int64_t in, std::int64_t out, std::int64_t kernel,
            const ConvArgs& args) {
  return {randn({out, in / args.groups, kernel, kernel}, generator), randn({out}, generator), args};
}

struct Net {
  Tensor x;
  std::vector<Layer> layers;  // each takes what the one before gives
};

Tensor activated(const Tensor& x, Activation::Kind kind) {
  return kind == Activation::Kind::relu ? relu(x) : relu6(x);
}

// Added to itself between the layers, pooled, and made larger: what is known of values goes through all of
// it.
Tensor between(const Tensor& y, bool last) {
  if (last) return y;
  static OpCache cache;
  const Tensor sum = add(y, y, Activation::Kind::relu);
  const Tensor largest = max_pool(sum, {2, 2}, {.stride = {1}, .padding = {1}});
  return conv_transpose(largest, full({y.shape()[1], y.shape()[1], 2, 2}, 0.25), full({y.shape()[1]}, 0.5),
                        {.cache = &cache});
}

Tensor apart(const Net& net, Activation::Kind kind) {
  Tensor y = net.x;
  for (const Layer& each : net.layers)
    y = between(activated(conv(y, each.weight, each.bias, each.args).clone(), kind),
                &each == &net.layers.back())
            .clone();
  return y;
}

Tensor together(const Net& net, Activation::Kind kind, std::vector<OpCache>& caches) {
  caches.resize(net.layers.size());
  Tensor y = net.x;
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    ConvArgs args = net.layers[i].args;
    args.activation = kind;
    args.cache = &caches[i];
    y = between(conv(y, net.layers[i].weight, net.layers[i].bias, args), i + 1 == net.layers.size());
  }
  return y;
}

std::int64_t differences(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous();
  const Tensor y = b.contiguous();
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.span<float>().size(); ++i) {
    const float left = x.span<float>()[i];
    const float right = y.span<float>()[i];
    const bool same = std::isnan(left) ? std::isnan(right)
                                       : left == right || std::abs(left - right) <= 1e-5F * std::abs(right);
    count += same ? 0 : 1;
  }
  return count;
}

std::vector<Net> nets() {
  Generator generator(7);
  std::vector<Net> all;
  for (const std::int64_t channels : {3, 8, 5}) {
    for (const std::int64_t kernel : {1, 3}) {
      for (const std::int64_t wide : {8, 7}) {
        Net net{randn({2, channels, 9, 7}, generator), {}};
        net.layers.push_back(layer(generator, channels, wide, kernel, {.padding = {kernel / 2}}));
        net.layers.push_back(layer(generator, wide, wide, 3, {.padding = {1}, .groups = wide}));
        net.layers.push_back(layer(generator, wide, 16, 1, {.stride = {2}}));
        all.push_back(std::move(net));
      }
    }
  }
  return all;
}

// Where the value goes: the images, or weights or bias of a layer.
std::vector<Tensor*> places(Net& net) {
  std::vector<Tensor*> all = {&net.x};
  for (Layer& each : net.layers) {
    all.push_back(&each.weight);
    all.push_back(&each.bias);
  }
  return all;
}

TEST(FusedRelu, GivesWhatTheFunctionGivesAfterTheConvolutionWhateverTheValues) {
  constexpr std::array kValues = {kNan, kInfinity, -kInfinity, 3e38F, -1e36F, 1e25F};
  std::int64_t cases = 0;
  for (const auto kind : {Activation::Kind::relu, Activation::Kind::relu6}) {
    for (Net& net : nets()) {
      std::vector<OpCache> caches;  // kept while values change: what was prepared must be noticed as outdated
      for (Tensor* place : places(net)) {
        const Tensor before = place->clone();
        for (const float value : kValues) {
          place->mutable_span<float>()[static_cast<std::size_t>(place->numel() / 2)] = value;
          ASSERT_EQ(differences(together(net, kind, caches), apart(net, kind)), 0)
              << "value " << value << ", tensor " << to_string(place->shape());
          ++cases;
        }
        assign(*place, before);
      }
    }
  }
  EXPECT_EQ(cases, 2 * 12 * 7 * 6);
}

// The largest value of a window that lies in the padding altogether is minus infinity, however small the
// image.
TEST(FusedRelu, GivesWhatTheFunctionGivesAfterWindowsOfPaddingAlone) {
  Generator generator(4);
  const Tensor x = randn({1, 3, 9, 7}, generator);
  const Layer first = layer(generator, 3, 8, 3, {.padding = {1}});
  const Layer second = layer(generator, 8, 8, 3, {.padding = {1}});
  std::vector<OpCache> caches(2);
  const auto run = [&](Activation activation, OpCache* a, OpCache* b) {
    const Tensor y =
        conv(x, first.weight, first.bias, {.padding = {1}, .activation = activation, .cache = a});
    const Tensor pooled = max_pool(y, {1, 2}, {.stride = {1}, .padding = {0, 1}, .dilation = {1, 8}});
    EXPECT_EQ(pooled.shape(), Shape({1, 8, 9, 1}));
    EXPECT_EQ(max(pooled).item(), -INFINITY);
    return conv(pooled, second.weight, second.bias, {.padding = {1}, .activation = activation, .cache = b});
  };
  const Tensor fused = run(Activation::Kind::relu, &caches[0], &caches[1]);
  EXPECT_EQ(differences(fused, relu(run({}, nullptr, nullptr))), 0);
  EXPECT_TRUE(any(isnan(fused)).item<bool>());
}

}  // namespace
}  // namespace ballast
