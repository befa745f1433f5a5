// SPDX-License-Identifier: Apache-2.0
// Keys and values that grow in place, beside concatenation.
#include <gtest/gtest.h>

#include <vector>

#include "ballast/error.h"
#include "ballast/nn.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && all(eq(a, b)).item() != 0;
}

TEST(KVCache, GivesWhatConcatenationGives) {
  Generator generator{5};
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const std::int64_t batch : {1, 3}) {
      for (const std::int64_t features : {1, 5, 64}) {
        nn::KVCache cache;
        Tensor keys;
        Tensor values;
        for (const std::int64_t tokens : {3, 1, 0, 60, 1, 64, 1, 130, 1}) {
          // as a model has them: views of one product, heads exchanged with tokens
          const Tensor next = randn({batch, tokens, 2, features}, generator).to(dtype).permute({0, 2, 1, 3});
          const Tensor other = (next * 2.0).to(dtype);
          keys = keys.defined() ? concat({keys, next}, 2) : next.clone();
          values = values.defined() ? concat({values, other}, 2) : other.clone();
          const nn::KVCache::Seen seen = cache.append(next, other);
          ASSERT_TRUE(same(seen.keys, keys)) << cache.length();
          ASSERT_TRUE(same(seen.values, values)) << cache.length();
        }
        EXPECT_EQ(cache.length(), 261);
      }
    }
  }
}

TEST(KVCache, WritesATokenIntoTheMemoryItHas) {
  nn::KVCache cache;
  const Tensor first = cache.append(ones({1, 2, 100, 4}), ones({1, 2, 100, 4})).keys;
  for (int i = 0; i < 28; ++i)
    EXPECT_EQ(cache.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})).keys.storage(), first.storage()) << i;
  EXPECT_NE(cache.append(ones({1, 2, 1, 4}), ones({1, 2, 1, 4})).keys.storage(), first.storage());
}

TEST(KVCache, CopiesDoNotWriteIntoEachOther) {
  nn::KVCache cache;
  static_cast<void>(cache.append(ones({1, 1, 2, 3}), ones({1, 1, 2, 3})));
  nn::KVCache copy = cache;
  const Tensor mine = cache.append(full({1, 1, 1, 3}, 5), full({1, 1, 1, 3}, 5)).keys;
  const Tensor its = copy.append(full({1, 1, 1, 3}, 7), full({1, 1, 1, 3}, 7)).keys;
  EXPECT_EQ(sum(mine).item(), 6 + 15);
  EXPECT_EQ(sum(its).item(), 6 + 21);
}

TEST(KVCache, ForgetsAndRefuses) {
  nn::KVCache cache;
  static_cast<void>(cache.append(ones({1, 1, 2, 3}), ones({1, 1, 2, 3})));
  EXPECT_THROW(static_cast<void>(cache.append(ones({2, 1, 1, 3}), ones({2, 1, 1, 3}))), Error);
  EXPECT_THROW(static_cast<void>(cache.append(ones({1, 1, 1, 3}), ones({1, 1, 1, 4}))), Error);
  EXPECT_THROW(static_cast<void>(cache.append(ones({1, 1, 1, 3}), ones({1, 1, 2, 3}))), Error);
  EXPECT_THROW(static_cast<void>(cache.append(ones({1, 1, 1, 3}).to(DType::f16), ones({1, 1, 1, 3}))), Error);
  EXPECT_THROW(cache.truncate(3), Error);
  EXPECT_EQ(cache.length(), 2);
  cache.truncate(1);
  EXPECT_EQ(sum(cache.append(full({1, 1, 1, 3}, 5), full({1, 1, 1, 3}, 5)).keys).item(), 3 + 15);
}

}  // namespace
}  // namespace ballast
