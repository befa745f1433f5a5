// SPDX-License-Identifier: Apache-2.0
// What a graph says about sizes is right at every size, or the model is refused.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>

#include "ballast/graph.h"
#include "ballast/ops.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsSupersetOf;

struct NoWeights {
  BALLAST_FIELDS();
};

Graph traced(const std::vector<InputSpec>& inputs, const std::function<Tensor(const Tensor&)>& work) {
  return trace(NoWeights{}, inputs,
               [&](std::span<const Tensor> in) { return std::vector<Tensor>{work(in[0])}; });
}

std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
}

// With the sizes of the inputs' dimensions by name.
std::int64_t value_of(const SizeExpr& size, const std::map<std::string, std::int64_t>& named) {
  std::int64_t sum = size.constant;
  for (const SizeExpr::Term& term : size.terms) {
    std::int64_t product = term.factor;
    for (const SizeExpr::Dim& dim : term.dims) product *= named.at(dim.name);
    for (const SizeExpr& part : term.rounded) product *= value_of(part, named);
    sum += product;
  }
  return floor_of(sum, size.divisor);
}

using Function = std::function<std::int64_t(std::int64_t)>;

// x [n, 2] times f(n): what the graph takes f for; nullopt when it is refused.
std::optional<SizeExpr> found_for(const Function& f, const InputDim& dim = "n") {
  try {
    const Graph graph = traced({{"x", {dim, 2}}}, [&](const Tensor& x) { return x * f(x.shape()[0]); });
    const GraphValue& operand = graph.values[static_cast<std::size_t>(graph.nodes[0].inputs[1])];
    if (!operand.number.is_constant()) return operand.number;
    return SizeExpr{static_cast<std::int64_t>(operand.tensor.item()), {}, 1};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::baked_dimension) << error.what();
    return std::nullopt;
  }
}

::testing::AssertionResult right_everywhere(const SizeExpr& found, const Function& f, std::int64_t step = 1) {
  for (std::int64_t n = step; n < 3000; n += step) {
    const std::int64_t told = value_of(found, {{"n", n}});
    if (told != f(n))
      return ::testing::AssertionFailure()
             << to_string(found) << " is " << told << " for " << n << ", must be " << f(n);
  }
  return ::testing::AssertionSuccess();
}

TEST(Sizes, AreFoundForEveryQuotientAndWhatItLeaves) {
  int count = 0;
  for (const std::int64_t divisor : {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32}) {
    for (const std::int64_t factor : {1, 2, 3}) {
      for (const std::int64_t added : {-5, -1, 0, 1, 2, 7}) {
        const Function quotient = [=](std::int64_t n) { return floor_of(factor * n + added, divisor); };
        const auto found = found_for(quotient);
        ASSERT_TRUE(found) << factor << " * n + " << added << " by " << divisor;
        EXPECT_TRUE(right_everywhere(*found, quotient));
        ++count;
      }
    }
    const std::vector<Function> rests = {
        [=](std::int64_t n) { return n % divisor; },
        [=](std::int64_t n) { return (divisor - n % divisor) % divisor; },
        [=](std::int64_t n) { return (divisor - n % divisor) % divisor / 2; },
        [=](std::int64_t n) { return (n + divisor - 1) / divisor * divisor; },
        [=](std::int64_t n) { return n / divisor * divisor; }};
    for (std::size_t i = 0; i < rests.size(); ++i) {
      const auto found = found_for([&](std::int64_t n) { return rests[i](n) + 3; });
      ASSERT_TRUE(found) << "rest " << i << " by " << divisor;
      EXPECT_TRUE(right_everywhere(*found, [&](std::int64_t n) { return rests[i](n) + 3; }));
      ++count;
    }
  }
  EXPECT_EQ(count, 12 * (18 + 5));
}

TEST(Sizes, AreRightOrTheModelIsRefused) {
  const std::vector<Function> functions = {
      [](std::int64_t n) { return n * n; },
      [](std::int64_t n) { return n * n * n + 0; },
      [](std::int64_t n) { return n * (n - 1) / 2; },
      [](std::int64_t n) { return n > 40 ? n + 1 : n; },
      [](std::int64_t n) { return n > 1 ? n : 7; },
      [](std::int64_t n) { return std::min<std::int64_t>(n, 512); },
      [](std::int64_t n) { return std::max<std::int64_t>(n, 20); },
      [](std::int64_t n) { return n == 37 ? 0 : n; },
      [](std::int64_t n) { return static_cast<std::int64_t>(std::sqrt(static_cast<double>(n))); },
      [](std::int64_t n) { return static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(n))); },
      [](std::int64_t n) { return static_cast<std::int64_t>(std::popcount(static_cast<unsigned>(n))); },
      [](std::int64_t n) { return n / 100; },
      [](std::int64_t n) { return n / 113; },
      [](std::int64_t n) { return n / 700; },
      [](std::int64_t n) { return n % 2 == 0 ? n : n + 2; },
      [](std::int64_t n) { return n / 2 / 3 + n % 3; },
      [](std::int64_t n) { return 100 / n; },
      [](std::int64_t n) { return 1000 - n; },
      [](std::int64_t n) { return (n + 1) / 2 * ((n + 3) / 4); }};
  int found_some = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto found = found_for(functions[i]);
    if (!found) continue;
    ++found_some;
    EXPECT_TRUE(right_everywhere(*found, functions[i])) << "function " << i;
  }
  EXPECT_GE(found_some, 4);
  EXPECT_TRUE(found_for(functions[0]));
}

TEST(Sizes, OfMultiplesAloneMayRoundAsTheyLike) {
  for (const std::int64_t multiple : {2, 8, 32, 224}) {
    for (const std::int64_t divisor : {2, 4, 7, 16, 32, 64}) {
      const Function up = [=](std::int64_t n) { return (n + divisor - 1) / divisor; };
      const auto found = found_for(up, {"n", multiple});
      ASSERT_TRUE(found) << multiple << " " << divisor;
      EXPECT_TRUE(right_everywhere(*found, up, multiple));
    }
  }
}

// What a model is called with.
std::set<std::int64_t> sizes_seen(const InputDim& dim,
                                  const std::function<Tensor(const Tensor&)>& work = {}) {
  std::set<std::int64_t> seen;
  static_cast<void>(traced({{"x", {1, 2, dim, 16}}}, [&](const Tensor& x) {
    Tensor y = work ? work(x) : x * 2;
    seen.insert(x.shape()[2]);
    return y;
  }));
  return seen;
}

TEST(Sizes, AreTracedOffEveryGridTheModelDoesNotHave) {
  EXPECT_THAT(sizes_seen("height"), IsSupersetOf({1,  2,  3,  4,  5,  7,  8,   13,  16,  31,  32,
                                                  33, 37, 40, 41, 64, 97, 127, 224, 225, 1031}));
  EXPECT_THAT(sizes_seen({"height", 224}), IsSupersetOf({224, 448, 672, 1120}));
  EXPECT_THAT(sizes_seen({"height", 0, 3, 40}),
              AllOf(IsSupersetOf({3, 4, 5, 39, 40}), testing::Each(AllOf(testing::Ge(3), testing::Le(40)))));
  const auto halves = [](const Tensor& x) {
    return max_pool(x, {8, 8}).reshape({1, 2, x.shape()[2] / 8, 2});
  };
  EXPECT_THAT(sizes_seen("height", halves), IsSupersetOf({8, 9, 15, 16, 17, 31, 37}));
  const auto by_eight = [](const Tensor& x) { return x.reshape({1, 2, -1, 8, 16}); };
  EXPECT_THAT(sizes_seen("height", by_eight), IsSupersetOf({8, 16, 24, 40, 56, 224}));
}

TEST(Sizes, RefuseAPathThatOneSizeTakes) {
  for (const std::int64_t edge : {1, 2, 36, 40, 64, 100, 128, 256, 512, 1000, 1024}) {
    const auto branching = [&](const Tensor& x) { return x.shape()[0] > edge ? neg(x) : exp(x); };
    const Error error = error_of([&] { static_cast<void>(traced({{"x", {"n", 2}}}, branching)); });
    EXPECT_EQ(error.code(), Errc::baked_dimension) << edge;
    EXPECT_THAT(error.what(), AllOf(HasSubstr(R"("n" is baked in)"), HasSubstr("n = ")));
    EXPECT_NO_THROW(static_cast<void>(traced({{"x", {{"n", 0, 1, edge}, 2}}}, branching)));
    EXPECT_NO_THROW(static_cast<void>(traced({{"x", {{"n", 0, edge + 1}, 2}}}, branching)));
  }
}

TEST(Sizes, MayBeThoseOfAnyValue) {
  const Tensor weight = linspace(-1, 1, 36).reshape({2, 2, 3, 3});
  const Graph graph = traced({{"x", {1, 2, "height", "width"}}}, [&](const Tensor& x) {
    const ConvArgs half{.stride = {2}, .padding = {1}};
    const Tensor small = conv(conv(x, weight, {}, half), weight, {}, half);
    return resize(x, {.size = {small.shape()[2], small.shape()[3]}}) + small;
  });
  std::ostringstream text;
  text << graph;
  EXPECT_THAT(text.str(), AllOf(HasSubstr("resize(x) size=[%3.2, %3.3]"),
                                HasSubstr("F32 [1, 2, (height+3)/4, (width+3)/4]")));
}

TEST(Sizes, OfATraceCostNothing) {
  // Sixteen gigabytes for one of a batch, many times over.
  const Graph graph = traced({{"x", {"batch", 1 << 16, 1 << 16}}}, [](const Tensor& x) {
    const Tensor y = softmax(x * 2 + x, -1);
    return mean(gelu(y.reshape({x.shape()[0], 1 << 20, 1 << 12}).permute({0, 2, 1})), {1}).contiguous();
  });
  EXPECT_EQ(graph.values[static_cast<std::size_t>(graph.outputs[0])].shape.size(), 2U);
}

TEST(Sizes, TheModelRefusesAreNotItsDimensions) {
  const Error error = error_of([&] {
    static_cast<void>(traced({{"x", {2, "features"}}}, [](const Tensor& x) {
      return matmul(x, ones({8, 3}));
    }));
  });
  EXPECT_EQ(error.code(), Errc::baked_dimension);
  EXPECT_THAT(error.what(), HasSubstr(R"("features")"));
}

// How many are chosen is a size of its own: sums, reshapes and ranges follow it, of inputs of one size, too.
TEST(Sizes, WhatValuesDecideIsASizeOfItsOwn) {
  for (const InputDim& dim : {InputDim(4), InputDim("n")}) {
    const Graph graph = traced({{"x", {dim, 3}}}, [](const Tensor& x) {
      const Tensor above = masked_select(x, gt(x, 0));
      const Tensor places = nonzero(lt(x, 0));
      return concat({arange(0, above.size(0) + 2 * places.size(0)).to(DType::f32), above}, 0);
    });
    const GraphValue& result = graph.values[static_cast<std::size_t>(graph.outputs[0])];
    ASSERT_EQ(result.sizes.size(), 1U);
    EXPECT_FALSE(result.sizes[0].is_constant());
    std::set<std::int64_t> counted;
    for (const GraphNode& node : graph.nodes)
      for (const SymbolicAttribute& one : node.symbolic)
        if (std::string_view(node.operation->name) == "arange")
          for (const SizeExpr::Term& term : one.size.terms) counted.insert(term.dims[0].value);
    EXPECT_EQ(counted.size(), 2U) << "of both choices";
  }
}

TEST(Sizes, ANumberOfValuesThatIsBakedInIsRefused) {
  const auto message = [](const std::function<Tensor(const Tensor&)>& work) {
    return error_of([&] { static_cast<void>(traced({{"x", {4, 3}}}, work)); });
  };
  const auto halves = message([](const Tensor& x) {
    const Tensor above = masked_select(x, gt(x, 0));
    return above.size(0) % 2 == 0 ? above : neg(above);
  });
  EXPECT_EQ(halves.code(), Errc::baked_dimension);
  EXPECT_THAT(halves.what(), HasSubstr("a number of rows that values decide is baked in"));
  const auto scaled = message([](const Tensor& x) {
    const Tensor above = masked_select(x, gt(x, 0));
    return above * (1.0 / static_cast<double>(above.size(0)));
  });
  EXPECT_EQ(scaled.code(), Errc::baked_dimension);
}

}  // namespace
}  // namespace ballast
