// SPDX-License-Identifier: Apache-2.0
// Against sorted values. tests/cli/test_stats.py holds the same against NumPy, for every distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "ballast/error.h"
#include "ballast/runtime.h"
#include "ballast/stats.h"
#include "base/file.h"
#include "base/scratch.h"
#include "tensor/plane_support.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

// The numbers of a tensor, a complex one's parts each, in order, the finite ones alone.
std::vector<double> sorted_values(const Tensor& tensor) {
  const DTypeInfo& about = info(tensor.dtype());
  std::vector<double> values;
  if (about.kind == DTypeKind::complex) {
    std::vector<std::byte> bytes(tensor.size_bytes());
    tensor.read(0, bytes);
    auto storage = Storage::heap(bytes.size());
    std::copy(bytes.begin(), bytes.end(), storage->mutable_data());
    const DType part = about.bits == 32 ? DType::f16 : about.bits == 64 ? DType::f32 : DType::f64;
    values = numbers_of(Tensor::contiguous_view(part, {2 * tensor.numel()}, storage));
  } else if (!is_real(tensor.dtype()) && (about.bits < 8 || about.kind == DTypeKind::opaque)) {
    std::vector<std::byte> bytes(tensor.size_bytes());
    tensor.read(0, bytes);
    for (const std::byte byte : bytes) values.push_back(static_cast<double>(byte));
  } else {
    values = numbers_of(tensor);
  }
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::sort(values.begin(), values.end());
  return values;
}

bool is_exact(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::c64:
    case DType::c128:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64:
    case DType::qi32:
      return false;
    default:
      return true;
  }
}

void expect_quantiles(const Summary& found, const std::vector<double>& sorted, bool exact,
                      const std::string& what) {
  ASSERT_EQ(found.stats.finite(), sorted.size()) << what;
  std::uint64_t counted = 0;
  double before = -kInfinity;
  for (const Bucket& bucket : found.buckets) {
    ASSERT_LE(bucket.low, bucket.high) << what;
    ASSERT_GE(bucket.low, before) << what;
    ASSERT_TRUE(!exact || bucket.low == bucket.high) << what;
    before = bucket.high;
    counted += bucket.count;
  }
  EXPECT_EQ(counted, sorted.size()) << what;
  for (int step = 0; step <= 200; ++step) {
    const double share = step / 200.0;
    const double got = found.quantile(share);
    if (sorted.empty()) {
      ASSERT_TRUE(std::isnan(got)) << what;
      continue;
    }
    const double place = std::max(0.0, std::ceil(share * static_cast<double>(sorted.size()) - 1));
    const double want = sorted[static_cast<std::size_t>(place)];
    if (exact) {
      ASSERT_EQ(got, want) << what << " at " << share;
    } else {
      ASSERT_LE(std::fabs(got - want), std::fabs(want) * 0x1p-8) << what << " at " << share;
    }
  }
}

bool same_stats(const TensorStats& a, const TensorStats& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.count == b.count && a.nan == b.nan && a.inf == b.inf && a.neg_inf == b.neg_inf &&
         a.zeros == b.zeros && same(a.min, b.min) && same(a.max, b.max) && same(a.mean, b.mean) &&
         same(a.std, b.std);
}

TEST(Summary, QuantilesAreThoseOfSortedValuesForEveryDtypeAndLayout) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const auto& [name, tensor] : layouts(dtype, 67, 131)) {
      const std::string what = std::string(info(dtype).code) + " " + name;
      const Summary found = summary(tensor);
      expect_quantiles(found, sorted_values(tensor), is_exact(dtype), what);
      EXPECT_TRUE(found.exact()) << what;
      EXPECT_TRUE(same_stats(found.stats, stats(tensor))) << what;
    }
  }
}

// Every bit pattern of 16 bits once: as many buckets as there are finite values, and both zeros are one.
TEST(Summary, EveryCodeOfSixteenBitsHasItsBucket) {
  std::vector<std::uint16_t> codes;
  for (std::uint32_t code = 0; code < 65536; ++code) codes.push_back(static_cast<std::uint16_t>(code));
  const Tensor all = Tensor::from(codes, {65536});
  for (const DType dtype : {DType::f16, DType::bf16, DType::i16, DType::u16}) {
    const Tensor tensor = Tensor::contiguous_view(dtype, {65536}, all.storage());
    const Summary found = summary(tensor);
    expect_quantiles(found, sorted_values(tensor), true, std::string(info(dtype).code));
    EXPECT_EQ(found.buckets.size(), found.stats.finite() - (is_floating(dtype) ? 1U : 0U));
  }
}

TEST(Summary, BucketsOfFloatsAreNarrowAtEveryExponent) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (int exponent = -126; exponent < 128; ++exponent) {
    for (const double part : {1.0, 1.0039, 1.5, 1.996, -1.0, -1.7}) {
      floats.push_back(static_cast<float>(std::ldexp(part, exponent)));
      doubles.push_back(std::ldexp(part, exponent * 8));
    }
  }
  const auto count = static_cast<std::int64_t>(floats.size());
  const Tensor narrow = Tensor::from(floats, {count});
  const Tensor wide = Tensor::from(doubles, {count});
  expect_quantiles(summary(narrow), sorted_values(narrow), false, "F32");
  for (const Bucket& bucket : summary(narrow).buckets)
    EXPECT_LE(std::fabs(bucket.high - bucket.low), 0x1p-7 * std::fabs(bucket.low));
  // What lies below the normal doubles has an absolute width.
  const Summary found = summary(wide);
  const std::vector<double> sorted = sorted_values(wide);
  for (const double share : {0.01, 0.1, 0.4, 0.5, 0.6, 0.9, 0.99}) {
    const double want =
        sorted[static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size()) - 1))];
    EXPECT_LE(std::fabs(found.quantile(share) - want), std::max(std::fabs(want) * 0x1p-8, 0x1p-1029));
  }
}

// Many values quickly: evenly between -0.5 and 0.5.
Tensor even_values(std::int64_t rows, std::int64_t cols) {
  Tensor tensor = Tensor::empty(DType::f32, {rows, cols});
  std::uint32_t state = 1;
  for (float& value : tensor.mutable_span<float>()) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F;
  }
  return tensor;
}

TEST(Summary, DoesNotDependOnTheThreadsNorOnNeighbours) {
  std::vector<Tensor> tensors;
  for (const std::int64_t count : {0, 1, 100, 9000, 3'000'000, 7, 2'000'001, 50'000})
    tensors.push_back(even_values(1, count));
  const int before = thread_count();
  std::vector<Summary> alone;
  for (const Tensor& tensor : tensors) alone.push_back(summary(tensor));
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    std::size_t next = 0;
    summary(tensors, [&](std::size_t i, const Summary& found) {
      EXPECT_EQ(i, next++);
      EXPECT_TRUE(same_stats(found.stats, alone[i].stats));
      ASSERT_EQ(found.buckets.size(), alone[i].buckets.size());
      for (std::size_t k = 0; k < found.buckets.size(); ++k) {
        EXPECT_EQ(found.buckets[k].low, alone[i].buckets[k].low);
        EXPECT_EQ(found.buckets[k].count, alone[i].buckets[k].count);
      }
    });
    EXPECT_EQ(next, tensors.size());
  }
  set_thread_count(before);
}

TEST(Summary, InfinitiesAreToldApartAndLengthsAreEuclids) {
  const Tensor tensor = Tensor::from({3.0, -kInfinity, 4.0, kInfinity, -kInfinity, kNaN}, {6}, DType::f32);
  const Summary found = summary(tensor);
  EXPECT_EQ(found.stats.inf, 3U);
  EXPECT_EQ(found.stats.neg_inf, 2U);
  EXPECT_DOUBLE_EQ(found.stats.l2(), 5);
  const Histogram histogram = found.histogram(4);
  EXPECT_EQ(histogram.below, 2U);
  EXPECT_EQ(histogram.above, 1U);
  EXPECT_EQ(histogram.edges.size(), 5U);
  const Summary none = summary(Tensor::from({kNaN, kNaN}, {2}));
  EXPECT_TRUE(none.histogram().counts.empty());
  EXPECT_EQ(none.stats.l2(), 0);
  EXPECT_THROW(static_cast<void>(found.quantile(1.1)), Error);
  EXPECT_THROW(static_cast<void>(found.quantile(kNaN)), Error);
  EXPECT_THROW(static_cast<void>(found.histogram(0)), Error);
}

TEST(Summary, SmallTensorsAreNotSampled) {
  const Tensor tensor = even_values(2048, 2048);
  EXPECT_TRUE(sampled_summary(tensor).exact());
  EXPECT_TRUE(same_stats(sampled_summary(tensor).stats, stats(tensor)));
}

class SampledSummary : public Scratch {};

// As it lies in memory, in a file, transposed, and as every second column.
TEST_F(SampledSummary, IsTheSameEveryTimeAndNearTheWhole) {
  const std::int64_t rows = 3000;
  const std::int64_t cols = 2048;
  const Tensor memory = even_values(rows, cols);
  const auto bytes = memory.size_bytes();
  write(path("t.bin"), std::string(reinterpret_cast<const char*>(memory.data()), bytes));
  const auto file = File::open(path("t.bin"), {.io = Io::read});
  const Tensor lying = Tensor::contiguous_view(DType::f32, {rows, cols}, range_of(*file, 0, bytes));
  const Summary whole = summary(memory);
  const Summary first = sampled_summary(memory);
  for (const Tensor& tensor : {memory, lying, lying.t(), memory.t()}) {
    const Summary found = sampled_summary(tensor);
    EXPECT_FALSE(found.exact());
    EXPECT_EQ(found.stats.count, std::uint64_t{1} << 20U);
    EXPECT_EQ(found.values, static_cast<std::uint64_t>(rows * cols));
    EXPECT_TRUE(same_stats(found.stats, first.stats));
    // Three standard errors of a share: 0.0015 at a million values.
    for (const double share : {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99}) {
      EXPECT_GE(found.quantile(share), whole.quantile(share - 0.0015) - 1e-9) << share;
      EXPECT_LE(found.quantile(share), whole.quantile(share + 0.0015) + 1e-9) << share;
    }
  }
  const Tensor every_other = Tensor::zeros(DType::bf16, {5000, 4096}).index({ellipsis, Slice{0, {}, 2}});
  EXPECT_FALSE(sampled_summary(every_other).exact());
}

// One page from each of 1,024 parts: every part's own number is seen as often.
TEST(Summary, TheSampleHasOnePageOfEveryPart) {
  Tensor tensor = Tensor::empty(DType::f32, {1024, 8192});
  std::int64_t i = 0;
  for (float& value : tensor.mutable_span<float>()) value = static_cast<float>(i++ / 8192);
  const Summary found = sampled_summary(tensor);
  std::uint64_t counted = 0;
  for (const Bucket& bucket : found.buckets) counted += bucket.count;
  EXPECT_EQ(counted, std::uint64_t{1} << 20U);
  for (int step = 1; step < 64; ++step)
    EXPECT_NEAR(found.quantile(step / 64.0), step * 16 - 1, step * 16 / 200.0 + 1);
}

TEST(Summary, ThrowingFromProgressStopsIt) {
  struct Stop {};
  const Tensor tensor = Tensor::zeros(DType::f32, {8'000'000});
  EXPECT_THROW(static_cast<void>(summary(tensor, [](std::uint64_t, std::uint64_t) { throw Stop(); })), Stop);
  std::uint64_t last = 0;
  static_cast<void>(summary(tensor, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, tensor.size_bytes());
    EXPECT_GE(done, last);
    last = done;
  }));
  EXPECT_EQ(last, tensor.size_bytes());
}

}  // namespace
}  // namespace ballast
