// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3×3 by patches, beside the plain loops in F64: the product of sizes, channels, batches,
// paddings and what follows, and of how the image lies. Run a second time with ONEDNN_MAX_CPU_ISA=AVX2
// (tests/CMakeLists.txt), where images lie in blocks.
#include "ops/winograd.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ballast/ops.h"
#include "ballast/runtime.h"
#include "ballast/storage.h"
#include "ops/conv_shapes.h"

namespace ballast {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Layer {
  Tensor weight;
  Tensor bias;
  ConvArgs args;
};

Layer layer(Generator& generator, std::int64_t in, std::int64_t out, std::int64_t padding) {
  const double scale = 1 / std::sqrt(9.0 * static_cast<double>(in));
  return {randn({out, in, 3, 3}, generator) * scale, randn({out}, generator), {.padding = {padding}}};
}

Tensor by_loops(const Tensor& x, const Layer& layer) {
  const Tensor bias = layer.bias.defined() ? layer.bias.to(DType::f64) : Tensor();
  return conv(x.to(DType::f64), layer.weight.to(DType::f64), bias, layer.args);
}

Tensor prepared(const Tensor& x, const Layer& layer, OpCache& cache) {
  ConvArgs args = layer.args;
  args.cache = &cache;
  return conv(x, layer.weight, layer.bias, args);
}

bool by_patches(const Tensor& x, const Layer& layer) {
  return ops::fits_winograd(ops::conv_shapes(x, layer.weight, layer.args), x.shape());
}

double largest(const Tensor& x) {
  return max(abs(x.to(DType::f64))).item<double>();
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous();
  const Tensor y = b.contiguous();
  return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
}

// The same values, lying another way.
enum class Lies { row_major, channels_last, every_second, odd_byte, behind_a_convolution };

Tensor laid(const Tensor& x, Lies how) {
  switch (how) {
    case Lies::row_major:
      return x;
    case Lies::channels_last:
      return x.permute({0, 2, 3, 1}).clone().permute({0, 3, 1, 2});
    case Lies::every_second: {
      Tensor wide = full({x.size(0), x.size(1), x.size(2), x.size(3) * 2}, kInfinity);
      Tensor view = wide.index({ellipsis, Slice{{}, {}, 2}});
      assign(view, x);
      return view;
    }
    case Lies::odd_byte: {
      const auto storage = Storage::heap(x.size_bytes() + 1);
      std::memcpy(static_cast<std::byte*>(storage->mutable_data()) + 1, x.data(), x.size_bytes());
      return Tensor::contiguous_view(DType::f32, x.shape(), storage, 1);
    }
    case Lies::behind_a_convolution:
      break;
  }
  const Tensor one = eye(x.size(1), x.size(1)).reshape({x.size(1), x.size(1), 1, 1});
  return conv(x, one);
}

class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }

  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

TEST(Winograd, EqualsLoopsInDoubleForEverySizeChannelBatchAndPadding) {
  Generator generator(1);
  int patches = 0;
  for (const std::int64_t height : {3, 4, 5, 8, 11})
    for (const std::int64_t width : {4, 7, 12})
      for (const std::int64_t in : {8, 17, 32})
        for (const std::int64_t out : {32, 40})
          for (const std::int64_t batch : {1, 3})
            for (const std::int64_t padding : {0, 1, 4}) {
              Layer one = layer(generator, in, out, padding);
              if ((height + width + in + batch) % 2 == 0) one.bias = {};
              const Tensor x = randn({batch, in, height, width}, generator);
              OpCache cache;
              const Tensor expected = by_loops(x, one);
              const Tensor found = prepared(x, one, cache);
              patches += by_patches(x, one) ? 1 : 0;
              ASSERT_EQ(found.shape(), expected.shape());
              EXPECT_LE(largest(found.to(DType::f64) - expected), 2e-6 * largest(expected))
                  << "[" << batch << ", " << in << ", " << height << ", " << width << "] to " << out
                  << ", padding " << padding;
            }
  EXPECT_TRUE(ops::isa_in_use() == Isa::scalar || patches > 40) << patches << " of 540 are made by patches";
}

TEST(Winograd, EqualsLoopsHoweverTheImageLiesAndWhateverFollows) {
  Generator generator(2);
  const Tensor x = randn({2, 32, 10, 13}, generator);
  const std::array<Activation, 5> activations = {Activation{}, Activation::Kind::relu,
                                                 Activation::Kind::relu6, Activation::Kind::silu,
                                                 Activation::Kind::gelu};
  for (const Lies how :
       {Lies::row_major, Lies::channels_last, Lies::every_second, Lies::odd_byte, Lies::behind_a_convolution})
    for (const Activation activation : activations)
      for (const DType weights : {DType::f32, DType::f16, DType::bf16}) {
        Layer one = layer(generator, 32, 64, 1);
        one.weight = one.weight.to(weights);
        one.bias = one.bias * 4.0;  // so that there is something above 6
        one.args.activation = activation;
        OpCache cache;
        const Tensor expected = by_loops(x, one);
        EXPECT_LE(largest(prepared(laid(x, how), one, cache).to(DType::f64) - expected),
                  2e-6 * largest(expected))
            << "lies " << static_cast<int>(how) << ", activation " << static_cast<int>(activation.kind);
      }
}

TEST(Winograd, GivesTheSameBitsWhateverTheNumberOfThreads) {
  Generator generator(3);
  const std::vector<Shape> shapes = {{1, 32, 12, 12}, {1, 64, 30, 22}, {3, 32, 15, 15}, {1, 16, 90, 90}};
  for (const Shape& shape : shapes) {
    const Layer one = layer(generator, shape[1], 96, 1);
    const Tensor x = randn(shape, generator);
    Tensor first;
    for (const int threads : {1, 2, 3, 7, 16}) {
      const Threads scope(threads);
      OpCache cache;
      const Tensor found = prepared(x, one, cache).clone();
      if (!first.defined()) first = found;
      EXPECT_TRUE(same_bits(found, first)) << threads << " threads";
    }
  }
}

// A sum of patches mixes pixels that a result's window does not hold: what is not finite must not get there.
TEST(Winograd, IsNotUsedWhereAValueIsNotFiniteOrSumsOverflow) {
  Generator generator(4);
  const Layer one = layer(generator, 32, 32, 1);
  for (const float wild : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 3e38F, -1e37F})
    for (const std::int64_t row : {0, 5, 11})
      for (const std::int64_t column : {0, 1, 6, 11}) {
        Tensor x = randn({1, 32, 12, 12}, generator);
        x.mutable_span<float>()[static_cast<std::size_t>((7 * 12 + row) * 12 + column)] = wild;
        OpCache cache;
        EXPECT_TRUE(same_bits(prepared(x, one, cache), conv(x, one.weight, one.bias, one.args)))
            << wild << " at " << row << ", " << column;
      }
}

TEST(Winograd, StaysFiniteUpToWhereItIsUsed) {
  Generator generator(5);
  for (double scale = 1e30; scale < 4e38; scale *= 3) {
    const Tensor x = (randn({1, 32, 12, 12}, generator) * scale).to(DType::f32);
    Layer one = layer(generator, 32, 32, 1);
    one.bias = {};
    OpCache cache;
    const Tensor expected = by_loops(x, one);
    if (!std::isfinite(largest(x)) || largest(expected) > 3e38) break;
    EXPECT_LE(largest(prepared(x, one, cache).to(DType::f64) - expected), 2e-6 * largest(expected)) << scale;
  }
}

// Small weights make small results of pixels whose sums overflow, and the other way round.
TEST(Winograd, StaysFiniteWhereOneSideIsHugeAndTheOtherTiny) {
  Generator generator(7);
  for (const double huge : {1e36, 1e37, 1e38, 3e38})
    for (const bool weights : {false, true}) {
      Layer one = layer(generator, 32, 32, 1);
      one.weight = full({32, 32, 3, 3}, weights ? huge : 1e-36);
      one.bias = {};
      const Tensor x = full({1, 32, 12, 12}, weights ? 1e-36 : huge);
      OpCache cache;
      const Tensor expected = by_loops(x, one);
      EXPECT_LE(largest(prepared(x, one, cache).to(DType::f64) - expected), 2e-6 * largest(expected)) << huge;
    }
}

TEST(Winograd, SeesAWeightThatWasWritten) {
  Generator generator(6);
  Layer one = layer(generator, 32, 32, 1);
  const Tensor x = randn({1, 32, 12, 12}, generator);
  OpCache cache;
  const Tensor before = prepared(x, one, cache).clone();
  assign(one.weight, one.weight * 2.0);
  one.bias = {};
  const Tensor expected = by_loops(x, one);
  EXPECT_LE(largest(prepared(x, one, cache).to(DType::f64) - expected), 2e-6 * largest(expected));
  EXPECT_FALSE(same_bits(before, prepared(x, one, cache)));
}

}  // namespace
}  // namespace ballast
