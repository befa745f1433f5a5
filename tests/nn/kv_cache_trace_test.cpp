// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values inside a trace. That what is exported computes the same is what
// tests/onnx/loss_cases.cpp sees.
#include <gmock/gmock.h>

#include <functional>
#include <optional>

#include "ballast/error.h"
#include "ballast/graph.h"
#include "ballast/nn.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

struct Nothing {
  BALLAST_FIELDS();
};

const std::vector<InputSpec> kTokens = {{"x", {1, 2, "tokens", 4}}};
const std::vector<InputSpec> kThree = {{"x", {1, 2, 3, 4}}};

std::string refusal(const std::vector<InputSpec>& inputs, const std::function<Tensor(const Tensor&)>& work) {
  try {
    static_cast<void>(trace(Nothing{}, inputs,
                            [&](std::span<const Tensor> in) { return std::vector<Tensor>{work(in[0])}; }));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::traced_value) << error.what();
    return error.what();
  }
  return "";
}

TEST(KVCacheInATrace, GrowsByTheSizesOfItsTokens) {
  const Graph graph = trace(Nothing{}, kTokens, [](std::span<const Tensor> in) {
    nn::KVCache cache;
    static_cast<void>(cache.append(in[0], in[0]));
    const nn::KVCache::Seen seen = cache.append(in[0].narrow(2, 0, 1), in[0].narrow(2, 0, 1));
    EXPECT_EQ(cache.length(), in[0].shape()[2] + 1);
    return std::vector<Tensor>{seen.keys, seen.values};
  });
  const auto& result = graph.values[static_cast<std::size_t>(graph.outputs[0])];
  EXPECT_EQ(to_string(result.sizes[2]), "tokens+1");
}

TEST(KVCacheInATrace, MayBeACopyOfOneWithTokens) {
  nn::KVCache prompt;
  static_cast<void>(prompt.append(ones({1, 2, 5, 4}), ones({1, 2, 5, 4})));
  const Graph graph = trace(Nothing{}, kTokens, [&](std::span<const Tensor> in) {
    nn::KVCache cache = prompt;
    return std::vector<Tensor>{cache.append(in[0], in[0]).keys};
  });
  EXPECT_EQ(to_string(graph.values[static_cast<std::size_t>(graph.outputs[0])].sizes[2]), "tokens+5");
  EXPECT_EQ(prompt.length(), 5);
  EXPECT_EQ(sum(prompt.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})).keys).item(), 48);
}

TEST(KVCacheInATrace, WithTokensFromOutsideIsRefusedAndStaysAsItWas) {
  nn::KVCache cache;
  static_cast<void>(cache.append(ones({1, 2, 5, 4}), ones({1, 2, 5, 4})));
  EXPECT_THAT(refusal(kThree, [&](const Tensor& x) { return cache.append(x, x).keys; }),
              testing::HasSubstr("KVCache: it holds 5 tokens from before this trace"));
  EXPECT_EQ(sum(cache.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})).keys).item(), 48);
}

TEST(KVCacheInATrace, ThatOutlivesItIsRefusedUntilItIsEmptied) {
  nn::KVCache cache;
  EXPECT_EQ(refusal(kThree,
                    [&](const Tensor& x) {
                      cache.truncate(0);
                      return cache.append(x, x).keys;
                    }),
            "");
  EXPECT_EQ(cache.length(), 3);
  try {
    static_cast<void>(cache.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})));
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::traced_value);
    EXPECT_THAT(error.what(), testing::HasSubstr("3 tokens are of a trace that is over"));
  }
  cache.truncate(0);
  EXPECT_EQ(sum(cache.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})).keys).item(), 8);
}

// A named size records the code many times: what is kept from one time to the next is of no trace.
TEST(KVCacheInATrace, ThatIsNotMadeThereIsRefusedWhereASizeHasAName) {
  nn::KVCache cache;
  EXPECT_NE(refusal(kTokens, [&](const Tensor& x) { return cache.append(x, x).keys; }), "");
}

}  // namespace
}  // namespace ballast
