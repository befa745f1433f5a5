// SPDX-License-Identifier: Apache-2.0
#include "tensor/buckets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/cast.h"

namespace ballast {
namespace {

constexpr int kFloatShift = 16;
constexpr int kDoubleShift = 64 - 19;
constexpr std::uint64_t kFew = 1U << 13U;
constexpr std::uint64_t kMostInTables = std::uint64_t{1} << 31U;  // no counter of 32 bits runs over

bool holds_integers(DType stored) {
  return !is_floating(stored);
}

// Of `code`: the smallest and the largest size, sign aside, among the values it stands for.
struct Sizes {
  double low;
  double high;
  bool negative;
};

Sizes sizes_of(DType stored, std::uint32_t code) {
  if (bucket_kind(stored) == BucketKind::top_of_float) {
    const std::uint32_t bits = (code & 0x7FFFU) << kFloatShift;
    // Those with fewer bits than a float have nothing in its lower half.
    const std::uint32_t last = stored == DType::f32 ? bits | 0xFFFFU : bits;
    return {std::bit_cast<float>(bits), std::bit_cast<float>(last), (code & 0x8000U) != 0};
  }
  const std::uint64_t bits = static_cast<std::uint64_t>(code & 0x3FFFFU) << kDoubleShift;
  const std::uint64_t last = bits | ((std::uint64_t{1} << kDoubleShift) - 1);
  Sizes sizes{std::bit_cast<double>(bits), std::bit_cast<double>(last), (code & 0x40000U) != 0};
  if (holds_integers(stored)) sizes = {std::ceil(sizes.low), std::floor(sizes.high), sizes.negative};
  return sizes;
}

std::vector<Bucket> single_values(DType stored, const CodeCounts& codes) {
  std::vector<Bucket> buckets;
  for (const auto& [code, count] : codes) {
    const auto bits = static_cast<std::uint16_t>(code);
    double value = 0;
    cast_elements(stored, reinterpret_cast<const std::byte*>(&bits), DType::f64,
                  reinterpret_cast<std::byte*>(&value), 1);
    value += 0.0;  // one zero
    if (std::isfinite(value)) buckets.push_back({value, value, count});
  }
  return buckets;
}

// The two codes of the smallest sizes hold zeros of both signs, of which the number is known, and denormals.
std::vector<Bucket> bucket_ranges(DType stored, const CodeCounts& codes, std::uint64_t zeros) {
  std::vector<Bucket> buckets;
  if (zeros > 0) buckets.push_back({0, 0, zeros});
  for (const auto& [code, count] : codes) {
    const Sizes sizes = sizes_of(stored, code);
    if (!std::isfinite(sizes.high)) continue;
    std::uint64_t rest = count;
    if (sizes.low == 0) {
      const std::uint64_t taken = std::min(zeros, count);
      zeros -= taken;
      rest -= taken;
    }
    if (rest == 0) continue;
    buckets.push_back(sizes.negative ? Bucket{-sizes.high, -sizes.low, rest}
                                     : Bucket{sizes.low, sizes.high, rest});
  }
  return buckets;
}

}  // namespace

BucketKind bucket_kind(DType stored) noexcept {
  switch (stored) {
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return BucketKind::code16;
    default:
      return is_floating(stored) && stored != DType::f64 ? BucketKind::top_of_float
                                                         : BucketKind::top_of_double;
  }
}

BucketCounter::BucketCounter(DType stored, std::uint64_t expected)
    : kind_(bucket_kind(stored)),
      size_(kind_ == BucketKind::top_of_double ? std::size_t{1} << 19U : std::size_t{1} << 16U) {
  if (expected <= kFew) {
    few_.reserve(static_cast<std::size_t>(expected));
    return;
  }
  memory_ = Storage::heap(kTables * size_ * sizeof(std::uint32_t), true);
  tables_ = reinterpret_cast<std::uint32_t*>(memory_->mutable_data());
}

template <class CodeAt>
void BucketCounter::count_codes(std::size_t count, CodeAt&& code_at) {
  if (tables_ == nullptr) {
    for (std::size_t i = 0; i < count; ++i) few_.push_back(code_at(i));
    return;
  }
  if (in_tables_ + count > kMostInTables) spill();
  in_tables_ += count;
  std::size_t i = 0;
  for (; i + kTables <= count; i += kTables) {
    for (std::size_t k = 0; k < kTables; ++k) ++tables_[code_at(i + k) * kTables + k];
  }
  for (; i < count; ++i) ++tables_[code_at(i) * kTables];
}

void BucketCounter::add(const std::byte* raw, const float* values, std::size_t count) {
  if (kind_ == BucketKind::code16) {
    return count_codes(count, [raw](std::size_t i) {
      std::uint16_t code = 0;
      std::memcpy(&code, raw + 2 * i, 2);
      return static_cast<std::uint32_t>(code);
    });
  }
  count_codes(count, [values](std::size_t i) {
    return std::bit_cast<std::uint32_t>(values[i]) >> static_cast<unsigned>(kFloatShift);
  });
}

void BucketCounter::add(const std::byte* raw, const double* values, std::size_t count) {
  if (kind_ == BucketKind::code16) return add(raw, static_cast<const float*>(nullptr), count);
  count_codes(count, [values](std::size_t i) {
    return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(values[i]) >>
                                      static_cast<unsigned>(kDoubleShift));
  });
}

void BucketCounter::spill() {
  CodeCounts found;
  for (std::size_t code = 0; code < size_; ++code) {
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < kTables; ++k) sum += tables_[code * kTables + k];
    if (sum == 0) continue;
    found.emplace_back(static_cast<std::uint32_t>(code), sum);
    std::fill_n(tables_ + code * kTables, kTables, 0U);
  }
  spilled_ = merged(spilled_, found);
  in_tables_ = 0;
}

CodeCounts BucketCounter::finish() {
  if (tables_ != nullptr) {
    spill();
    return std::move(spilled_);
  }
  std::sort(few_.begin(), few_.end());
  CodeCounts codes;
  for (const std::uint32_t code : few_) {
    if (codes.empty() || codes.back().first != code) codes.emplace_back(code, 0);
    ++codes.back().second;
  }
  return codes;
}

CodeCounts merged(const CodeCounts& a, const CodeCounts& b) {
  CodeCounts all;
  all.reserve(a.size() + b.size());
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (right == b.end() || (left != a.end() && left->first < right->first)) {
      all.push_back(*left++);
    } else if (left == a.end() || right->first < left->first) {
      all.push_back(*right++);
    } else {
      all.emplace_back(left->first, left->second + right->second);
      ++left;
      ++right;
    }
  }
  return all;
}

std::vector<Bucket> buckets_of(DType stored, const CodeCounts& codes, const TensorStats& stats) {
  std::vector<Bucket> found = bucket_kind(stored) == BucketKind::code16
                                  ? single_values(stored, codes)
                                  : bucket_ranges(stored, codes, stats.zeros);
  std::sort(found.begin(), found.end(), [](const Bucket& a, const Bucket& b) {
    return a.low != b.low ? a.low < b.low : a.high < b.high;
  });
  std::vector<Bucket> buckets;
  for (const Bucket& bucket : found) {
    const bool again =
        !buckets.empty() && buckets.back().low == bucket.low && buckets.back().high == bucket.high;
    if (again) {
      buckets.back().count += bucket.count;  // the other zero
    } else {
      buckets.push_back(bucket);
    }
  }
  if (buckets.empty()) return buckets;
  // Not further than there are values: closer to them, and quantiles never lie outside.
  buckets.front().low = std::max(buckets.front().low, stats.min);
  buckets.back().high = std::min(buckets.back().high, stats.max);
  return buckets;
}

}  // namespace ballast
