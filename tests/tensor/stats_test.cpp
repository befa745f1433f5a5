// SPDX-License-Identifier: Apache-2.0
// Expected values: stats_cases.txt, by numpy (make_stats_cases.py).
#include "ballast/stats.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "ballast/error.h"
#include "ballast/runtime.h"

namespace ballast {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Tensor tensor_of(DType dtype, const std::vector<std::byte>& bytes) {
  const auto count = static_cast<std::int64_t>(bytes.size() * 8 / info(dtype).bits);
  auto storage = Storage::heap(bytes.size());
  std::copy(bytes.begin(), bytes.end(), storage->mutable_data());
  return Tensor::contiguous_view(dtype, {count}, storage);
}

// Three pieces of work, the last one not full.
Tensor big_tensor() {
  Tensor tensor = Tensor::empty(DType::f32, {1250, 2000});
  std::uint64_t i = 0;
  for (float& value : tensor.mutable_span<float>()) {
    value = static_cast<float>(static_cast<double>(i++ * 2654435761U % 4294967296U) / 65536 - 20000);
  }
  return tensor;
}

struct Case {
  std::string dtype;
  Tensor tensor;
  TensorStats expected;
};

double parse(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

std::vector<Case> cases() {
  std::ifstream file(std::string(BALLAST_TEST_DATA) + "/tensor/stats_cases.txt");
  std::vector<Case> result;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream words(text);
    Case one;
    std::string hex;
    std::string min;
    std::string max;
    std::string mean;
    std::string std;
    TensorStats& e = one.expected;
    words >> one.dtype >> hex >> e.count >> e.nan >> e.inf >> e.zeros >> min >> max >> mean >> std;
    e.min = parse(min);
    e.max = parse(max);
    e.mean = parse(mean);
    e.std = parse(std);
    one.tensor =
        one.dtype == "BIG" ? big_tensor() : tensor_of(dtype_from_code(one.dtype).value(), from_hex(hex));
    result.push_back(std::move(one));
  }
  return result;
}

void expect_equal(const TensorStats& got, const TensorStats& expected, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(got.count, expected.count);
  EXPECT_EQ(got.nan, expected.nan);
  EXPECT_EQ(got.inf, expected.inf);
  EXPECT_EQ(got.zeros, expected.zeros);
  if (expected.finite() == 0) {
    EXPECT_TRUE(std::isnan(got.min) && std::isnan(got.max) && std::isnan(got.mean) && std::isnan(got.std));
    return;
  }
  EXPECT_EQ(got.min, expected.min);
  EXPECT_EQ(got.max, expected.max);
  EXPECT_NEAR(got.mean, expected.mean, 1e-12 * std::max(std::fabs(expected.min), std::fabs(expected.max)));
  EXPECT_NEAR(got.std, expected.std, 1e-7 * expected.std + 1e-15);
}

TEST(Stats, AgreesWithNumpyForEveryKindOfValue) {
  const std::vector<Case> all = cases();
  ASSERT_GT(all.size(), 25U);
  for (const Case& one : all) expect_equal(stats(one.tensor), one.expected, one.dtype);
}

TEST(Stats, OfManyTensorsIsThatOfEach) {
  const std::vector<Case> all = cases();
  std::vector<Tensor> tensors;
  for (const Case& one : all) tensors.push_back(one.tensor);
  const std::vector<TensorStats> results = stats(tensors);
  ASSERT_EQ(results.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) expect_equal(results[i], all[i].expected, all[i].dtype);
}

TEST(Stats, DoesNotDependOnTheNumberOfThreads) {
  const Tensor tensor = big_tensor();
  const int before = thread_count();
  set_thread_count(1);
  const TensorStats one = stats(tensor);
  set_thread_count(5);
  const TensorStats five = stats(tensor);
  set_thread_count(before);
  EXPECT_EQ(one.mean, five.mean);
  EXPECT_EQ(one.std, five.std);
}

TEST(Stats, LooksThroughStrides) {
  const Tensor tensor = Tensor::from({1.0F, 2.0F, NAN, 4.0F, 5.0F, 6.0F}, {2, 3});
  const TensorStats column = stats(tensor.t().index({Index(std::int64_t{2})}));
  EXPECT_EQ(column.count, 2U);
  EXPECT_EQ(column.nan, 1U);
  EXPECT_EQ(column.max, 6.0);
}

TEST(Stats, ProgressEndsAtTheTotal) {
  std::atomic<std::uint64_t> most{0};
  std::uint64_t in_all = 0;
  const Tensor tensor = big_tensor();
  static_cast<void>(stats(std::span(&tensor, 1), [&](std::uint64_t done, std::uint64_t total) {
    std::uint64_t seen = most.load();
    while (seen < done && !most.compare_exchange_weak(seen, done)) {
    }
    in_all = total;
  }));
  EXPECT_EQ(most.load(), tensor.size_bytes());
  EXPECT_EQ(in_all, tensor.size_bytes());
}

TEST(Stats, RefusesATensorWithoutData) {
  EXPECT_THROW(static_cast<void>(stats(Tensor(DType::f32, {2}))), Error);
}

TEST(Stats, AllZeroNeedsAtLeastOneValue) {
  EXPECT_FALSE(stats(Tensor::zeros(DType::f32, {0})).all_zero());
  EXPECT_TRUE(stats(Tensor::zeros(DType::bf16, {3})).all_zero());
}

TEST(CountNotFinite, IsNanPlusInf) {
  for (const Case& one : cases())
    EXPECT_EQ(count_not_finite(one.tensor), one.expected.nan + one.expected.inf) << one.dtype;
}

TEST(CountNotFinite, KnowsTheEightBitFormatsWithoutInfinity) {
  std::vector<std::byte> codes;
  for (int i = 0; i < 256; ++i) codes.push_back(static_cast<std::byte>(i));
  // One NaN each (OCP MX and the fnuz formats), counted by the definition of the formats.
  EXPECT_EQ(count_not_finite(tensor_of(DType::f8_e4m3fnuz, codes)), 1U);
  EXPECT_EQ(count_not_finite(tensor_of(DType::f8_e5m2fnuz, codes)), 1U);
  EXPECT_EQ(count_not_finite(tensor_of(DType::f8_e8m0, codes)), 1U);
  EXPECT_EQ(stats(tensor_of(DType::f8_e8m0, codes)).nan, 1U);
  EXPECT_EQ(count_not_finite(tensor_of(DType::f4, codes)), 0U);
  EXPECT_EQ(stats(tensor_of(DType::f4, codes)).count, 512U);
}

}  // namespace
}  // namespace ballast
