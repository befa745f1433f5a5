// SPDX-License-Identifier: Apache-2.0
// Chains of operations on images, drawn at random, in the orders that convolutions choose (with AVX2, which
// tests/CMakeLists.txt asks for once, blocks of eight channels) beside row-major copies after every step:
// with weights of every floating dtype, and several counts of threads.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "ballast/ops.h"
#include "ballast/runtime.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ops_tests::error_of;
using ops_tests::tolerance;

class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(thread_count()) { set_thread_count(count); }

  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

  ~ThreadCount() { set_thread_count(before_); }

 private:
  int before_;
};

// Draws steps; each knows its weights.
class Drawing {
 public:
  using Step = std::function<Tensor(const Tensor&)>;

  Drawing(std::uint64_t seed, DType weights) : generator_(seed), weights_(weights) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return randint(low, high + 1, {}, generator_).item<std::int64_t>();
  }

  Tensor values(const Shape& shape, double scale = 1) {
    return (randn(shape, generator_) * scale).to(weights_);
  }

  // One that takes images of this shape.
  Step next(const Shape& shape) {
    const std::int64_t channels = shape[1];
    const bool small = shape[2] <= 9 && shape[3] <= 9;
    const bool large = shape[2] >= 2 && shape[3] >= 2;
    switch (between(0, 15)) {
      case 0:
      case 1:
      case 2:
        return convolution(channels, 1);
      case 3:
        return [w = values({channels, 1, 3, 3}), channels](const Tensor& x) {
          return conv(x, w, {}, {.padding = {1}, .groups = channels});
        };
      case 4:
        if (channels % 2 != 0) return convolution(channels, 1);
        return convolution(channels, 2);
      case 5:
        return [m = values({channels}), v = abs(values({channels})) + 0.5,
                g = values({channels})](const Tensor& x) { return batch_norm(x, m, v, g, m); };
      case 6:
        return [w = values({channels, channels, 3, 3}, 0.2)](const Tensor& x) {
          return add(x, conv(x, w, {}, {.same = true}), Activation::Kind::relu);
        };
      case 7:
        if (channels > 32) return [](const Tensor& x) { return relu(x); };
        return [](const Tensor& x) { return concat({x, silu(x)}, 1); };
      case 8:
        if (!large) return [](const Tensor& x) { return x * 0.5; };
        return [](const Tensor& x) { return max_pool(x, {2, 2}); };
      case 9:
        return [](const Tensor& x) { return avg_pool(x, {3, 3}, {.stride = {1}, .padding = {1}}); };
      case 10:
        if (!small) return convolution(channels, 1);
        return [w = values({channels, 8, 2, 2})](const Tensor& x) {
          return conv_transpose(x, w, {}, {.stride = {2}});
        };
      case 11:
        return [f = values({channels, 1, 1})](const Tensor& x) { return x * f.to(x.dtype()); };
      case 12:
        if (!small) return [](const Tensor& x) { return relu(x); };
        return [](const Tensor& x) { return resize(x, {.scale = {2}}); };
      case 13:
        return [half = channels > 1 ? channels / 2 : 1](const Tensor& x) { return x.narrow(1, 0, half); };
      case 14:
        return [](const Tensor& x) { return x.transpose(2, 3); };
      default:
        return [](const Tensor& x) {
          Tensor written = x + 0.0;
          written += 1.0;
          return written;
        };
    }
  }

 private:
  Step convolution(std::int64_t channels, std::int64_t groups) {
    const std::int64_t out = std::vector<std::int64_t>{8, 16, 24, 6}[static_cast<std::size_t>(between(0, 3))];
    const std::int64_t kernel = between(0, 1) == 0 ? 1 : 3;
    return [w = values({out, channels / groups, kernel, kernel}, 0.3), b = values({out}), kernel,
            groups](const Tensor& x) {
      return conv(x, w, b, {.padding = {kernel / 2}, .groups = groups, .activation = Activation::Kind::relu});
    };
  }

  Generator generator_;
  DType weights_;
};

struct Chain {
  Tensor x;
  std::vector<Drawing::Step> steps;

  [[nodiscard]] Tensor run(bool copied) const {
    Tensor y = x;
    for (const auto& step : steps) {
      y = step(y);
      if (copied) y = y.clone();
    }
    return y.clone();
  }
};

Chain drawn(std::uint64_t seed, DType images, DType weights) {
  Drawing drawing(seed, weights);
  const std::int64_t channels =
      std::vector<std::int64_t>{3, 8, 16, 5}[static_cast<std::size_t>(drawing.between(0, 3))];
  Chain chain{
      drawing.values({drawing.between(1, 3), channels, drawing.between(1, 17), drawing.between(1, 17)})
          .to(images),
      {}};
  Tensor y = chain.x;
  for (int i = 0; i < 7; ++i) {
    chain.steps.push_back(drawing.next(y.shape()));
    y = chain.steps.back()(y);
  }
  return chain;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(Blocks, ChainsGiveWhatRowMajorCopiesGiveAtEveryCountOfThreads) {
  constexpr std::uint64_t kChains = 4;  // others with --gtest_random_seed=N
  const auto begin = static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed)) * kChains;
  for (const DType weights : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType images : {DType::f32, DType::f16, DType::bf16}) {
      if (images != DType::f32 && images != weights) continue;
      for (std::uint64_t seed = begin; seed < begin + kChains; ++seed) {
        const Chain chain = drawn(seed, images, weights);
        Tensor first;
        for (const int threads : {1, 2, 3, 16}) {
          const ThreadCount count(threads);
          SCOPED_TRACE(testing::Message() << info(weights).code << " weights, " << info(images).code
                                          << " images, chain " << seed << ", " << threads << " threads");
          const Tensor y = chain.run(false);
          // Every step rounds images of 16 bits, and may round otherwise where F32 differs in its last bit.
          const double bound = images == DType::f32 ? 1e-5 : 4 * tolerance(images);
          ASSERT_LE(error_of(y, chain.run(true)), bound);
          ASSERT_TRUE(same_bits(chain.run(false), y));
          if (!first.defined()) first = y;
          ASSERT_LE(error_of(y, first), bound);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ballast
