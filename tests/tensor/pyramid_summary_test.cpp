// SPDX-License-Identifier: Apache-2.0
// What a pyramid's pass says of the values besides: the same bits as summary(), which reads them by itself.
#include "ballast/runtime.h"
#include "tensor/plane_support.h"

namespace ballast {
namespace {

bool same_bits(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

void expect_same_summary(const Summary& a, const Summary& b, const std::string& what) {
  EXPECT_EQ(a.values, b.values) << what;
  EXPECT_EQ(a.stats.count, b.stats.count) << what;
  EXPECT_EQ(a.stats.nan, b.stats.nan) << what;
  EXPECT_EQ(a.stats.inf, b.stats.inf) << what;
  EXPECT_EQ(a.stats.neg_inf, b.stats.neg_inf) << what;
  EXPECT_EQ(a.stats.zeros, b.stats.zeros) << what;
  EXPECT_TRUE(same_bits(a.stats.min, b.stats.min) && same_bits(a.stats.max, b.stats.max)) << what;
  EXPECT_TRUE(same_bits(a.stats.mean, b.stats.mean)) << what << ": " << a.stats.mean << ", " << b.stats.mean;
  EXPECT_TRUE(same_bits(a.stats.std, b.stats.std)) << what << ": " << a.stats.std << ", " << b.stats.std;
  ASSERT_EQ(a.buckets.size(), b.buckets.size()) << what;
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    ASSERT_EQ(a.buckets[i].low, b.buckets[i].low) << what;
    ASSERT_EQ(a.buckets[i].count, b.buckets[i].count) << what;
  }
}

void expect_summary_of_the_pass(const Tensor& tensor, const std::vector<std::int64_t>& axes,
                                const std::string& what) {
  Summary found;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  const auto progress = [&](std::uint64_t so_far, std::uint64_t all) {
    done = so_far;
    total = all;
  };
  const Pyramid whole = pyramid(Plane(tensor, axes), progress, &found);
  EXPECT_EQ(done, total) << what;
  expect_same_summary(found, summary(tensor), what);
}

// Sizes around blocks, pieces, chunks of columns and bands of rows.
const std::vector<Shape> kShapes = {
    {1},         {2047},       {2048},      {2049},      {100, 7},     {63, 65},  {64, 64},    {130, 2048},
    {5, 40'000}, {70, 16'385}, {1, 50'000}, {50'000, 1}, {1100, 1000}, {3, 4, 5}, {7, 1, 900}, {2'100'000}};

TEST(PyramidSummary, IsThatOfSummaryToTheLastBitForEveryForm) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape : kShapes) {
      const Tensor tensor = some_tensor(dtype, shape, 21);
      expect_summary_of_the_pass(tensor, {}, std::string(info(dtype).code) + " " + std::to_string(shape[0]));
    }
  }
}

TEST(PyramidSummary, IsThatOfSummaryToTheLastBitForEveryDtypeAndLayout) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const auto& [name, tensor] : layouts(dtype, 72, 56)) {
      expect_summary_of_the_pass(tensor, {}, name);
      if (tensor.rank() == 2) expect_summary_of_the_pass(tensor, {1, 0}, name + ", axes exchanged");
    }
  }
}

TEST(PyramidSummary, DoesNotDependOnTheThreads) {
  const Tensor tensor = some_tensor(DType::f32, {700, 5000}, 23);
  const int before = thread_count();
  for (const int threads : {1, 3, 16}) {
    set_thread_count(threads);
    expect_summary_of_the_pass(tensor, {}, std::to_string(threads));
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace ballast
