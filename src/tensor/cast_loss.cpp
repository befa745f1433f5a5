// SPDX-License-Identifier: Apache-2.0
#include "tensor/cast_loss.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/cast.h"

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

template <class Bits>
CastLoss compare_as(DType working, Bits exponent, DType from, const std::byte* before, DType to,
                    const std::byte* after, std::uint64_t count) {
  std::array<Bits, kBlock> left;
  std::array<Bits, kBlock> right;
  CastLoss loss;
  for (std::uint64_t done = 0; done < count; done += kBlock) {
    const std::uint64_t piece = std::min(kBlock, count - done);
    cast_elements(from, before + done * info(from).bits / 8, working,
                  reinterpret_cast<std::byte*>(left.data()), piece);
    cast_elements(to, after + done * info(to).bits / 8, working, reinterpret_cast<std::byte*>(right.data()),
                  piece);
    const CastLoss here = compare<Bits>(left.data(), right.data(), static_cast<std::size_t>(piece), exponent);
    loss.rounded += here.rounded;
    loss.overflowed += here.overflowed;
  }
  return loss;
}

// A whole number is what the value is towards zero; anything else is a limit, or stands for NaN.
CastLoss loss_of_whole(DType from, const std::byte* before, DType to, const std::byte* after,
                       std::uint64_t count) {
  std::array<double, kBlock> left;
  std::array<double, kBlock> right;
  CastLoss loss;
  for (std::uint64_t done = 0; done < count; done += kBlock) {
    const std::uint64_t piece = std::min(kBlock, count - done);
    cast_elements(from, before + done * info(from).bits / 8, DType::f64,
                  reinterpret_cast<std::byte*>(left.data()), piece);
    cast_elements(to, after + done * info(to).bits / 8, DType::f64,
                  reinterpret_cast<std::byte*>(right.data()), piece);
    for (std::size_t i = 0; i < piece; ++i) {
      const bool is_near = std::fabs(left[i] - right[i]) < 1;
      loss.overflowed += is_near ? 0U : 1U;
      loss.rounded += is_near && left[i] != right[i] ? 1U : 0U;
    }
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
  if (is_whole(to)) return loss_of_whole(from, before, to, after, count);
  if (fits_float(from) && fits_float(to))
    return compare_as<std::uint32_t>(DType::f32, 0x7F800000U, from, before, to, after, count);
  return compare_as<std::uint64_t>(DType::f64, 0x7FF0000000000000U, from, before, to, after, count);
}

CastLoss cast_loss(const Tensor& before, const Tensor& after) {
  std::atomic<std::uint64_t> rounded = 0;
  std::atomic<std::uint64_t> overflowed = 0;
  const auto total = static_cast<std::uint64_t>(before.numel());
  if (total == 0) return {};
  parallel_for((total - 1) / kRead + 1, 4, [&](std::uint64_t begin, std::uint64_t end) {
    std::vector<std::byte> left;
    std::vector<std::byte> right;
    const auto read = [](const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                         std::vector<std::byte>& out) {
      const std::uint64_t bits = info(tensor.dtype()).bits;
      out.resize(static_cast<std::size_t>((count * bits + 7) / 8));
      tensor.read(first * bits / 8, out);
    };
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t first = block * kRead;
      const std::uint64_t count = std::min(kRead, total - first);
      read(before, first, count, left);
      read(after, first, count, right);
      const CastLoss loss = cast_loss(before.dtype(), left.data(), after.dtype(), right.data(), count);
      rounded += loss.rounded;
      overflowed += loss.overflowed;
    }
  });
  return {rounded, overflowed};
}

}  // namespace ballast
