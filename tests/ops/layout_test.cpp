// SPDX-License-Identifier: Apache-2.0
// Results that lie channels-last behind row-major tensors, what is prepared once, and several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "ballast/ops.h"
#include "ballast/runtime.h"
#include "ops/cache.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ops_tests::error_of;

struct Net {
  Generator generator{7};
  Tensor x = randn({2, 3, 17, 13}, generator);
  Tensor w1 = randn({8, 3, 3, 3}, generator);
  Tensor w2 = randn({8, 8, 3, 3}, generator);
  Tensor bias = randn({8}, generator);
  Tensor mean = randn({8}, generator);
  Tensor variance = abs(randn({8}, generator)) + 0.5;

  /// A chain of everything that keeps the layout; `between` is applied to every result.
  Tensor run(const std::function<Tensor(const Tensor&)>& between) const {
    Tensor h = between(conv(x, w1, bias, {.padding = {1}, .activation = Activation::Kind::relu}));
    h = between(batch_norm(h, mean, variance, bias, mean));
    h = between(h + between(relu(conv(h, w2, {}, {.same = true}))));
    h = between(max_pool(h, {3, 3}, {.stride = {2}, .padding = {1}}));
    h = between(resize(h, {.scale = {2}, .mode = ResizeMode::linear}));
    h = between(concat({h, between(avg_pool(h, {3, 3}, {.stride = {1}, .padding = {1}}))}, 1));
    return between(adaptive_avg_pool(h, {2, 3}));
  }
};

TEST(ChannelsLast, ChainGivesWhatRowMajorCopiesGive) {
  const Net net;
  const Tensor lazy = net.run([](const Tensor& t) { return t; });
  const Tensor copied = net.run([](const Tensor& t) { return t.clone(); });
  EXPECT_LE(error_of(lazy, copied), 1e-6);
}

TEST(ChannelsLast, RowMajorBytesAreMadeOnlyWhenAskedFor) {
  const Net net;
  const Tensor y = conv(net.x, net.w1);
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_FALSE(y.storage()->ready());
  const Tensor z = relu(y);
  EXPECT_FALSE(y.storage()->ready());
  EXPECT_FALSE(z.storage()->ready());
  EXPECT_EQ(z.span<float>().size(), static_cast<std::size_t>(z.numel()));
  EXPECT_TRUE(z.storage()->ready());
}

// In every order that images may have here (tests/CMakeLists.txt runs it for narrower processors, where they
// lie in blocks of channels).
TEST(ChannelsLast, AChainOfConvolutionsMakesNoRowMajorBytes) {
  Generator generator{3};
  const Tensor x = randn({2, 3, 17, 13}, generator);
  std::vector<Tensor> seen = {conv(x, randn({16, 3, 3, 3}, generator), {}, {.padding = {1}})};
  const auto next = [&](Tensor made) { seen.push_back(std::move(made)); };
  next(relu(seen.back()));
  next(conv(seen.back(), randn({16, 16, 3, 3}, generator), {}, {.padding = {1}}));
  next(conv(seen.back(), randn({16, 1, 3, 3}, generator), {}, {.padding = {1}, .groups = 16}));
  next(seen.back() + seen[1]);
  next(max_pool(seen.back(), {2, 2}));
  next(conv_transpose(seen.back(), randn({16, 8, 2, 2}, generator), {}, {.stride = {2}}));
  next(concat({seen.back(), seen.back()}, 1));
  next(batch_norm(seen.back(), zeros({16}), ones({16})));
  next(seen.back() * 2.0);
  next(conv(seen.back(), randn({24, 16, 1, 1}, generator)));
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_FALSE(seen[i].storage()->ready()) << i;
  EXPECT_EQ(seen.back().span<float>().size(), static_cast<std::size_t>(seen.back().numel()));
}

// One pixel lies the same way in every order; what it is pooled to may be larger.
TEST(ChannelsLast, PoolingOfAnyResultIsThatOfItsRowMajorCopy) {
  Generator generator{4};
  for (const std::int64_t height : {1, 2, 5}) {
    for (const std::int64_t width : {1, 3}) {
      const Tensor y = conv(randn({2, 8, height + 2, width + 2}, generator), randn({16, 8, 3, 3}, generator));
      const Tensor copy =
          Tensor::from(std::vector<float>(y.span<float>().begin(), y.span<float>().end()), y.shape());
      const auto same = [&](const Tensor& a, const Tensor& b) {
        ASSERT_EQ(a.shape(), b.shape());
        EXPECT_TRUE(std::ranges::equal(a.span<float>(), b.span<float>())) << height << 'x' << width;
      };
      same(adaptive_avg_pool(y, {7, 6}), adaptive_avg_pool(copy, {7, 6}));
      same(adaptive_avg_pool(y, {1, 1}), adaptive_avg_pool(copy, {1, 1}));
      same(avg_pool(y, {2, 2}, {.stride = {1}, .padding = {1}}),
           avg_pool(copy, {2, 2}, {.stride = {1}, .padding = {1}}));
      same(max_pool(y, {3, 2}, {.stride = {1}, .padding = {1}}),
           max_pool(copy, {3, 2}, {.stride = {1}, .padding = {1}}));
    }
  }
}

TEST(ChannelsLast, ReadsAreRowMajorBeforeAndAfterTheBytesAreMade) {
  const Net net;
  const Tensor y = conv(net.x, net.w1);
  std::vector<float> before(static_cast<std::size_t>(y.numel()));
  y.read(0, std::as_writable_bytes(std::span(before)));
  EXPECT_FALSE(y.storage()->ready());
  const auto after = y.span<float>();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin(), after.end()));
}

TEST(ChannelsLast, WritesIntoAResultAreSeenByTheNextOperation) {
  const Net net;
  Tensor y = conv(net.x, net.w1);
  std::fill(y.mutable_span<float>().begin(), y.mutable_span<float>().end(), 5.0F);
  EXPECT_EQ(max(relu(y)).item(), 5);
  EXPECT_EQ(min(relu(y)).item(), 5);
}

TEST(ChannelsLast, ViewsOfAResultAreOfItsRowMajorForm) {
  const Net net;
  const Tensor y = conv(net.x, net.w1);
  const Tensor part = relu(y.narrow(1, 2, 3).transpose(2, 3));
  const Tensor expected = relu(y.clone().narrow(1, 2, 3).transpose(2, 3));
  EXPECT_EQ(error_of(part, expected), 0);
}

// What convolutions never make themselves, and images of bytes are.
TEST(ChannelsLast, EveryDtypeIsJoinedStackedAndRolledAsItsRowMajorCopyIs) {
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() &&
           std::memcmp(a.contiguous().data(), b.contiguous().data(), a.size_bytes()) == 0;
  };
  for (const DType dtype :
       {DType::boolean, DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::i32, DType::u64,
        DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{2, 5, 3}, Shape{2, 3, 4, 5}, Shape{1, 2, 3, 2, 3}}) {
      const auto rank = static_cast<std::int64_t>(shape.size());
      const Tensor numbers = arange(0, *try_numel(shape)).reshape(shape).to(dtype);
      Dims order = {0, rank - 1};
      for (std::int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
      const Tensor x = numbers.permute(order);  // the last dimension becomes the channels
      const Tensor plain = x.contiguous();
      SCOPED_TRACE(testing::Message() << info(dtype).code << " of rank " << rank);
      for (std::int64_t dim = 0; dim < rank; ++dim) {
        EXPECT_TRUE(same(concat({x, x}, dim), concat({plain, plain}, dim))) << "concat " << dim;
        EXPECT_TRUE(same(stack({x, x}, dim), stack({plain, plain}, dim))) << "stack " << dim;
        EXPECT_TRUE(same(roll(x, {1}, {dim}), roll(plain, {1}, {dim}))) << "roll " << dim;
      }
    }
  }
}

TEST(Fusion, ReluKeepsNaN) {
  Net net;
  net.x.mutable_span<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  const Tensor fused = conv(net.x, net.w1, net.bias, {.activation = Activation::Kind::relu});
  EXPECT_EQ(error_of(fused, relu(conv(net.x, net.w1, net.bias))), 0);
  EXPECT_TRUE(any(isnan(fused)).item() != 0);
}

TEST(OpCache, SecondCallFindsWhatTheFirstPrepared) {
  const Net net;
  OpCache cache;
  const Tensor first = conv(net.x, net.w1, net.bias, {.cache = &cache});
  ASSERT_EQ(cache.state().entries.size(), 1U);
  const void* prepared = cache.state().entries.front().prepared.get();
  const Tensor second = conv(net.x, net.w1, net.bias, {.cache = &cache});
  EXPECT_EQ(cache.state().entries.size(), 1U);
  EXPECT_EQ(cache.state().entries.front().prepared.get(), prepared);
  EXPECT_EQ(error_of(first, second), 0);
}

TEST(OpCache, HalfPrecisionWeightsAreConvertedOnce) {
  const Net net;
  OpCache cache;
  const Tensor w = net.w1.to(DType::f16);
  const Tensor b = net.bias.to(DType::f16);
  for (int i = 0; i < 3; ++i) static_cast<void>(conv(net.x.to(DType::f16), w, b, {.cache = &cache}));
  EXPECT_EQ(cache.state().entries.size(), 1U);
}

TEST(OpCache, NoticesOtherWeights) {
  Net net;
  OpCache cache;
  static_cast<void>(conv(net.x, net.w1, {}, {.cache = &cache}));
  for (int i = 0; i < 20; ++i) {
    const Tensor w =
        randn({8, 3, 3, 3}, net.generator);  // the allocator gives the same address again and again
    EXPECT_EQ(error_of(conv(net.x, w, {}, {.cache = &cache}), conv(net.x, w)), 0);
  }
}

TEST(OpCache, HoldsAFewShapesAndForgetsTheOldest) {
  Net net;
  OpCache cache;
  const Tensor w = randn({6, 5}, net.generator);
  for (std::int64_t rows = 4; rows < 30; ++rows) {
    const Tensor x = randn({rows, 6}, net.generator);
    EXPECT_LE(error_of(linear(x, w, {}, {.cache = &cache}), matmul(x, w)), 1e-6);
  }
  EXPECT_LE(cache.state().entries.size(), OpCache::State::kMost);
}

TEST(OpCache, CopiesStartEmptyAndMovesDoNot) {
  const Net net;
  OpCache cache;
  static_cast<void>(conv(net.x, net.w1, {}, {.cache = &cache}));
  OpCache copy = cache;
  EXPECT_TRUE(copy.state().entries.empty());
  OpCache moved = std::move(cache);
  EXPECT_EQ(moved.state().entries.size(), 1U);
  copy = moved;
  EXPECT_TRUE(copy.state().entries.empty());
  static_cast<void>(
      conv(net.x, net.w1, {}, {.cache = &cache}));  // NOLINT(bugprone-use-after-move): must stay usable
  moved.clear();
  EXPECT_TRUE(moved.state().entries.empty());
}

TEST(Threads, TwoThreadsShareACacheAndGiveTheSame) {
  const Net net;
  OpCache cache;
  OpCache dense_cache;
  Generator generator(3);
  const Tensor w = randn({11, 40}, generator);
  const auto work = [&] {
    return linear(relu(conv(net.x, net.w1, net.bias, {.cache = &cache})), w, {}, {.cache = &dense_cache});
  };
  const Tensor expected = work();
  std::vector<double> errors(4, 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < errors.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) errors[t] = error_of(work(), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double error : errors) EXPECT_LE(error, 1e-6);
}

TEST(Threads, ResultsDoNotDependOnTheirNumber) {
  const Net net;
  const int before = thread_count();
  set_thread_count(1);
  const Tensor one = net.run([](const Tensor& t) { return t; });
  set_thread_count(3);
  const Tensor three = net.run([](const Tensor& t) { return t; });
  set_thread_count(before);
  EXPECT_LE(error_of(three, one), 1e-6);
}

}  // namespace
}  // namespace ballast
