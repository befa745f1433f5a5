// SPDX-License-Identifier: Apache-2.0
// What the operations of cases_more.py refuse, and the edges no random case has.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <new>
#include <optional>
#include <vector>

#include "ballast/error.h"
#include "ballast/graph.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

Tensor floats(const Shape& shape) {
  return Tensor::zeros(DType::f32, shape);
}

std::optional<Errc> code_of(const std::function<Tensor()>& work) {
  try {
    static_cast<void>(work());
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(MoreRefusals, ShapesThatDoNotFit) {
  const Tensor index = Tensor::zeros(DType::i64, {2});
  const std::vector<std::function<Tensor()>> calls = {
      [] { return glu(floats({3}), 0); },
      [] {
        return diag(floats({2, 2, 2}));
      },
      [] {
        return unflatten(floats({2, 6}), 1, {4, -1});
      },
      [] {
        return unflatten(floats({4, 6}), 1, {5, -1});
      },
      [] {
        return channel_shuffle(floats({1, 5, 2}), 2);
      },
      [] {
        return unfold(floats({1, 2, 2, 2}), {3});
      },
      [] {
        return fold(floats({1, 4, 9}), {5, 5}, {2});
      },
      [] {
        return fold(floats({1, 5, 16}), {5, 5}, {2});
      },
      [&] {
        return index_add(floats({3, 2}), 0, index, floats({2, 3}));
      },
      [&] {
        return index_add(floats({3, 2}), 0, index, floats({3, 2}));
      },
      [] {
        return local_response_norm(floats({2, 3}), 2);
      },
      [] {
        return grid_sample(floats({1, 1, 2, 2}), floats({1, 3, 3, 3}));
      },
      [] {
        return grid_sample(floats({1, 1, 0, 2}), floats({1, 3, 3, 2}));
      },
      [] {
        return affine_grid(floats({1, 2, 2}), {1, 1, 3, 3});
      },
      [] { return fft(floats({4})); },
      [] {
        return irfft(floats({4, 3}));
      },
      [] { return stft(floats({3}), 8, {.center = false}); },
      [] {
        return istft(floats({4, 5, 2}), 8);
      },
      [] {
        return rotary_embedding(floats({3, 4}), {floats({3, 3}), floats({3, 3})});
      },
      [] {
        return einsum("ij,jk", {floats({2, 3}), floats({2, 3})});
      },
      [] {
        return einsum("ij", {floats({2, 3, 4})});
      },
      [] {
        return einsum("ii", {floats({2, 3})});
      }};
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(code_of(calls[i]), Errc::shape_mismatch) << i;
}

TEST(MoreRefusals, ArgumentsThatMeanNothing) {
  const std::vector<std::function<Tensor()>> calls = {
      [] {
        return einsum("ij,jk", {floats({2, 3})});
      },
      [] { return einsum("i->j", {floats({2})}); },
      [] { return einsum("i->ii", {floats({2})}); },
      [] {
        return einsum("i1", {floats({2, 2})});
      },
      [] {
        return einsum("......", {floats({1, 1, 1, 1, 1, 1})});
      },  // torch: one ellipsis an operand
      [] {
        return einsum("......", {floats({1, 1, 1, 1, 1, 1, 1, 1, 1, 1})});
      },
      [] { return einsum("...->......", {floats({2})}); },
      [] { return remainder(Tensor::zeros(DType::i64, {2}), 0); },
      [] { return celu(floats({2}), 0); },
      [] { return rotary_tables(3, 5).cos; },
      [] { return stft(floats({20}), 8, {.hop_length = 0}); },
      [] {
        return istft(floats({5, 3, 2}), 8, {.hop_length = 8, .window = hann_window(8), .center = false});
      },
      [] {
        return embedding_bag(Tensor::zeros(DType::i64, {1, 2}), floats({3, 2}),
                             {.per_sample_weights = floats({1, 2})});
      }};
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(code_of(calls[i]), Errc::invalid_argument) << i;
  const auto bag = [](std::vector<std::int64_t> offsets) {
    return code_of([&] {
      return embedding_bag(Tensor::zeros(DType::i64, {3}), floats({3, 2}),
                           {.offsets = Tensor::from(offsets, {static_cast<std::int64_t>(offsets.size())})});
    });
  };
  EXPECT_EQ(bag({1}), Errc::offset_out_of_range);
  EXPECT_EQ(bag({0, 4}), Errc::offset_out_of_range);
  EXPECT_EQ(bag({0, 2, 1}), Errc::offset_out_of_range);
  EXPECT_EQ(bag({0, 2, 2}), std::nullopt);
}

TEST(MoreRefusals, ChoiceByValueIsTracedUnlessItsNumberIsRead) {
  const std::vector<InputSpec> inputs = {{"x", {"n", 3}}};
  struct Nothing {
    Tensor forward(const Tensor& x) const { return x; }
  };
  const auto traced = [&](const std::function<Tensor(const Tensor&)>& work) {
    return code_of([&] {
      static_cast<void>(trace(Nothing{}, inputs,
                              [&](std::span<const Tensor> in) { return std::vector<Tensor>{work(in[0])}; }));
      return Tensor();
    });
  };
  EXPECT_EQ(traced([](const Tensor& x) { return nonzero(x); }), std::nullopt);
  EXPECT_EQ(traced([](const Tensor& x) { return masked_select(x, gt(x, 0)); }), std::nullopt);
  EXPECT_EQ(traced([](const Tensor& x) { return x * nonzero(x).span<std::int64_t>()[0]; }),
            Errc::traced_value);
  EXPECT_EQ(traced([](const Tensor& x) { return normalize(x); }), std::nullopt);
}

TEST(MoreOperations, InfinitiesStayWithTheirPatch) {
  Tensor patches = floats({1, 4, 4});
  patches.mutable_span<float>()[0] = INFINITY;
  const Tensor image = fold(patches, {4, 4}, {2}, {.stride = {2}});
  EXPECT_EQ(image.index({0, 0, 0, 0}).item(), INFINITY);
  EXPECT_EQ(sum(isfinite(image)).item(), 15);
}

TEST(MoreOperations, NumbersBeyondAllMeasureAreRefusedBeforeAnythingIsMadeOfThem) {
  const Tensor image = floats({1, 2, 5, 7});
  const Tensor weight = floats({2, 2, 2, 2});
  for (const std::int64_t large : {std::int64_t{1} << 30, std::int64_t{1} << 32, INT64_MAX}) {
    EXPECT_THROW(static_cast<void>(conv_transpose(image, weight, {}, {.dilation = {large}})), Error) << large;
    EXPECT_THROW(static_cast<void>(conv_transpose(image, weight, {}, {.stride = {large}})), Error) << large;
    EXPECT_THROW(static_cast<void>(conv(image, weight, {}, {.dilation = {large}})), Error) << large;
    EXPECT_THROW(static_cast<void>(conv(image, weight, {}, {.padding = {large}, .dilation = {large}})), Error)
        << large;
    EXPECT_THROW(static_cast<void>(pixel_shuffle(image, large)), Error) << large;
    EXPECT_THROW(static_cast<void>(pixel_unshuffle(image, large)), Error) << large;
  }
  EXPECT_THROW(static_cast<void>(chunk(floats({0, 3}), INT64_MAX)), Error);
  EXPECT_EQ(adaptive_avg_pool(floats({0, 3, 5, 7}), {1 << 30, 1 << 30}).numel(), 0);
  EXPECT_EQ(adaptive_max_pool(floats({2, 0, 5}), {1 << 30}).shape(), Shape({2, 0, 1 << 30}));
}

TEST(MoreOperations, Log2OfPowersIsWhole) {
  for (int e = -20; e <= 20; ++e) EXPECT_EQ(log2(Tensor::from({std::ldexp(1.0F, e)}, {1})).item(), e);
}

TEST(MoreOperations, LerpReachesBothEnds) {
  const Tensor a = Tensor::from({1e8F, 0.1F}, {2});
  const Tensor b = Tensor::from({0.3F, -7e9F}, {2});
  EXPECT_TRUE(all(eq(lerp(a, b, 0), a)).item<bool>());
  EXPECT_TRUE(all(eq(lerp(a, b, 1), b)).item<bool>());
}

TEST(MoreOperations, SpectraOfLongAndPrimeLengthsComeBack) {
  Generator generator(1);
  for (const std::int64_t n : {1, 2, 4096, 4099, 10007}) {
    const Tensor x = randn({n}, generator);
    EXPECT_TRUE(allclose(irfft(rfft(x), n), x, 1e-5, 1e-5)) << n;
  }
}

// Before anything is made: a list of 2^62 numbers that grows until memory ends is no answer.
TEST(MoreRefusals, WhatMakesTensorsOfNumbersRefusesWhatCannotBe) {
  constexpr std::int64_t kMany = std::int64_t{1} << 62U;
  constexpr std::int64_t kSide = std::int64_t{1} << 31U;
  Generator generator(1);
  const std::vector<std::function<Tensor()>> calls = {
      [] { return hann_window(kMany); },
      [] { return linspace(0, 1, kMany); },
      [] { return arange(0, kMany); },
      [] { return arange(INT64_MIN, INT64_MAX); },
      [] { return arange(INT64_MIN, 0); },
      [] { return one_hot(Tensor::from<std::int64_t>({INT64_MAX}, {1})); },
      [] {
        return flatten(zeros({0, kSide, kSide, kSide}), 1, 3);
      },
      [] { return eye(kMany, 1); },
      [] { return eye(kSide, kSide); },  // whose bytes fit, and whose floats do not
      [] { return zeros({kMany}); },
      [] {
        return ones({kSide, kSide});
      },
      [] {
        return full({kMany, kMany}, 1);
      },
      [&] { return rand({kMany}, generator); },
      [&] { return randn({kMany}, generator); },
      [&] { return randint(0, 2, {kMany}, generator); },
      [] { return rotary_tables(4, kMany, 10'000, 0).cos; },
      [] { return rotary_tables(kMany, 4, 10'000, 0).cos; },
      [] { return rotary_tables(kMany, 2, 10'000, kMany).cos; },
      [] {
        return affine_grid(floats({1, 2, 3}), {1, 1, kSide, kSide}, false);
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(code_of(calls[i]), Errc::size_overflow) << i;
}

std::vector<std::int64_t> numbers(const Tensor& x) {
  const Tensor dense = x.contiguous();
  const auto span = dense.span<std::int64_t>();
  return {span.begin(), span.end()};
}

TEST(MoreRefusals, NumbersAtTheEndsOfTheirTypeMeanWhatTheySay) {
  const Tensor x = arange(0, 16).reshape({4, 4});
  const Tensor none = zeros({4, 4}, DType::i64);
  for (const std::int64_t far : {std::int64_t{4}, INT64_MAX - 1, INT64_MAX}) {
    EXPECT_EQ(numbers(tril(x, far)), numbers(x)) << far;
    EXPECT_EQ(numbers(triu(x, far)), numbers(none)) << far;
    EXPECT_EQ(diag(x, far).numel(), 0) << far;
  }
  for (const std::int64_t far : {std::int64_t{-5}, INT64_MIN + 1, INT64_MIN}) {
    EXPECT_EQ(numbers(tril(x, far)), numbers(none)) << far;
    EXPECT_EQ(numbers(triu(x, far)), numbers(x)) << far;
    EXPECT_EQ(diag(x, far).numel(), 0) << far;
  }
  constexpr std::int64_t kStep = std::int64_t{1} << 62U;
  EXPECT_EQ(numbers(arange(INT64_MIN, INT64_MAX, kStep)),
            (std::vector<std::int64_t>{INT64_MIN, -kStep, 0, kStep}));
  EXPECT_EQ(code_of([&] {
              return split(x, {kStep, kStep, kStep, kStep, 4}, 0).front();
            }),
            Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              return pad(x, {INT64_MAX, INT64_MAX}, PadMode::replicate);
            }),
            Errc::invalid_argument);
}

// Nine places, of which the one in the middle sees the image: oneDNN would take 2 GB and 10 seconds.
TEST(MoreRefusals, PaddingThatAStrideLeavesOutCostsNothing) {
  constexpr std::int64_t kFar = 10'000'000;
  const Tensor image = full({1, 1, 1, 1}, 3);
  const Tensor seen = conv(image, full({1, 1, 1, 1}, 2), {}, {.stride = {kFar}, .padding = {kFar}});
  EXPECT_EQ(seen.shape(), (Shape{1, 1, 3, 3}));
  const auto values = seen.span<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{0, 0, 0, 0, 6, 0, 0, 0, 0}));
}

#if !defined(BALLAST_SANITIZED)  // where asking for so much memory ends the process

// 2^20 * 2^20 places are 0 in 32 bits, by which oneDNN divides. No machine has the memory for the result.
TEST(MoreRefusals, AnImageOfMorePlacesThanOneDnnCountsEndsInNoMemory) {
  const auto wide = [] {
    static_cast<void>(
        conv(floats({1, 4, 6, 6}), floats({4, 4, 3, 3}), {}, {.padding = {524'288}, .dilation = {3}}));
  };
  EXPECT_THROW(wide(), std::bad_alloc);
}

#endif

}  // namespace
}  // namespace ballast
