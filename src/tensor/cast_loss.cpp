// SPDX-License-Identifier: Apache-2.0
#include "tensor/cast_loss.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "base/thread_pool.h"
#include "tensor/elements.h"

namespace ballast {
namespace {

constexpr std::uint64_t kBlock = 2048;        // stays in the first-level cache; a multiple of 8
constexpr std::uint64_t kRead = 16 * kBlock;  // read at once

// Two values are one when their bits are: -0 and 0 differ, and no cast makes one from the other.
template <class Bits>
CastLoss compare(const Bits* before, const Bits* after, std::size_t count, Bits exponent) {
  std::uint32_t rounded = 0;
  std::uint32_t overflowed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool was = (before[i] & exponent) != exponent;
    const bool is = (after[i] & exponent) != exponent;
    rounded += was && is && before[i] != after[i] ? 1U : 0U;
    overflowed += was && !is ? 1U : 0U;
  }
  return {rounded, overflowed};
}

// A whole number is what the value is towards zero; anything else is a limit, or stands for NaN.
CastLoss compare_whole(const double* before, const double* after, std::size_t count) {
  CastLoss loss;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_near = std::fabs(before[i] - after[i]) < 1;
    loss.overflowed += is_near ? 0U : 1U;
    loss.rounded += is_near && before[i] != after[i] ? 1U : 0U;
  }
  return loss;
}

// Both sides as `working`, whose elements have the type T, in blocks: look(before, after, count).
template <class T, class Look>
CastLoss loss_of_blocks(DType working, DType from, const std::byte* before, DType to, const std::byte* after,
                        std::uint64_t count, Look&& look) {
  std::array<T, kBlock> left;
  std::array<T, kBlock> right;
  CastLoss loss;
  for (std::uint64_t done = 0; done < count; done += kBlock) {
    const std::uint64_t piece = std::min(kBlock, count - done);
    cast_elements(from, before + bytes_of(from, done), working, reinterpret_cast<std::byte*>(left.data()),
                  piece);
    cast_elements(to, after + bytes_of(to, done), working, reinterpret_cast<std::byte*>(right.data()), piece);
    const CastLoss here = look(left.data(), right.data(), static_cast<std::size_t>(piece));
    loss.rounded += here.rounded;
    loss.overflowed += here.overflowed;
  }
  return loss;
}

bool is_whole(DType dtype) {
  return info(dtype).kind == DTypeKind::signed_integer || info(dtype).kind == DTypeKind::unsigned_integer;
}

bool fits_float(DType dtype) {
  return is_floating(dtype) && info(dtype).bits <= 32;
}

}  // namespace

CastLoss cast_loss(DType from, const std::byte* before, DType to, const std::byte* after,
                   std::uint64_t count) {
  const auto look_at = [&]<class T>(DType working, T, auto look) {
    return loss_of_blocks<T>(working, from, before, to, after, count, look);
  };
  if (is_whole(to)) return look_at(DType::f64, double{}, compare_whole);
  if (fits_float(from) && fits_float(to))
    return look_at(DType::f32, std::uint32_t{}, [](const auto* left, const auto* right, std::size_t size) {
      return compare<std::uint32_t>(left, right, size, 0x7F800000U);
    });
  return look_at(DType::f64, std::uint64_t{}, [](const auto* left, const auto* right, std::size_t size) {
    return compare<std::uint64_t>(left, right, size, 0x7FF0000000000000U);
  });
}

CastLoss cast_loss(const Tensor& before, const Tensor& after) {
  std::atomic<std::uint64_t> rounded = 0;
  std::atomic<std::uint64_t> overflowed = 0;
  const auto total = static_cast<std::uint64_t>(before.numel());
  if (total == 0) return {};
  parallel_for((total - 1) / kRead + 1, 4, [&](std::uint64_t begin, std::uint64_t end) {
    ElementReader left(before);
    ElementReader right(after);
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t first = block * kRead;
      const std::uint64_t count = std::min(kRead, total - first);
      const CastLoss loss = cast_loss(before.dtype(), left.read(first, count).data(), after.dtype(),
                                      right.read(first, count).data(), count);
      rounded += loss.rounded;
      overflowed += loss.overflowed;
    }
  });
  return {rounded, overflowed};
}

}  // namespace ballast
