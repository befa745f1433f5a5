// SPDX-License-Identifier: Apache-2.0
// Values are looked at in blocks that stay in the first-level cache: brought to float (double for 64-bit ones
// and integers), then counted, then summed twice, so that the spread of values far from zero is right.
// Partial results are combined in the order of the data by Chan's rule, which makes them independent of the
// threads.
#include "ballast/stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/checked.h"
#include "base/pieces.h"
#include "base/shared_progress.h"
#include "tensor/blocks.h"
#include "tensor/elements.h"
#include "tensor/sound.h"
#include "tensor/stats_pass.h"

namespace ballast {
namespace {

constexpr std::uint64_t kPieceElements = kStatsPiece;
constexpr std::size_t kReadElements = 1U << 15U;
constexpr std::size_t kValuesAtOnce = kStatsBlock;

template <class T>
StatsPart look_at(const Tensor& tensor, std::uint64_t first, std::uint64_t count, BucketCounter* buckets) {
  ElementReader reader(tensor);
  const Isa isa = best_isa();
  std::array<T, kValuesAtOnce> block;
  StatsPart part;
  for (std::uint64_t done = 0; done < count; done += kReadElements) {
    const std::uint64_t in_reach = std::min<std::uint64_t>(kReadElements, count - done);
    reader.read(first + done, in_reach);
    for (std::uint64_t at = 0; at < in_reach; at += kValuesAtOnce) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kValuesAtOnce, in_reach - at));
      reader.cast(at, std::span(block).first(size));
      if (buckets != nullptr) buckets->add(reader.raw(at), block.data(), size);
      const std::size_t padded = (size + kStatsLanes - 1) / kStatsLanes * kStatsLanes;
      std::fill(block.begin() + static_cast<std::ptrdiff_t>(size),
                block.begin() + static_cast<std::ptrdiff_t>(padded), std::numeric_limits<T>::quiet_NaN());
      part.append(look_at_padded(block.data(), padded, padded - size, isa));
    }
  }
  return part;
}

// The bits that make a value NaN or infinite: all of them are those v with (v & mask) == pattern.
struct NotFinite {
  std::uint64_t mask;
  std::uint64_t pattern;
};

std::optional<NotFinite> not_finite(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return NotFinite{0x7FF0000000000000, 0x7FF0000000000000};
    case DType::f32:
      return NotFinite{0x7F800000, 0x7F800000};
    case DType::f16:
      return NotFinite{0x7C00, 0x7C00};
    case DType::bf16:
      return NotFinite{0x7F80, 0x7F80};
    case DType::f8_e5m2:
      return NotFinite{0x7C, 0x7C};
    case DType::f8_e4m3:
      return NotFinite{0x7F, 0x7F};
    case DType::f8_e8m0:
      return NotFinite{0xFF, 0xFF};
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
      return NotFinite{0xFF, 0x80};
    default:
      return std::nullopt;  // every bit pattern is a number
  }
}

template <class Bits>
std::uint64_t count_matches(std::span<const std::byte> bytes, NotFinite what) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
    Bits value;
    std::memcpy(&value, bytes.data() + i, sizeof(Bits));
    count += (value & static_cast<Bits>(what.mask)) == static_cast<Bits>(what.pattern) ? 1U : 0U;
  }
  return count;
}

}  // namespace

bool stats_need_double(DType stored) {
  return !is_floating(stored) || stored == DType::f64;
}

StatsPart look_at_values(const Tensor& tensor, std::uint64_t first, std::uint64_t count,
                         BucketCounter* buckets) {
  return stats_need_double(meaning_of(tensor.dtype()).stored) ? look_at<double>(tensor, first, count, buckets)
                                                              : look_at<float>(tensor, first, count, buckets);
}

TensorStats stats_of(const StatsPart& part) {
  TensorStats result;
  result.count = part.count;
  result.nan = part.nan;
  result.inf = part.inf;
  result.neg_inf = part.neg_inf;
  result.zeros = part.zeros;
  if (part.finite() == 0) return result;
  result.min = part.min;
  result.max = part.max;
  result.mean = part.mean;
  result.std = std::sqrt(part.squares / static_cast<double>(part.finite()));
  return result;
}

std::vector<TensorStats> stats_pass(std::span<const Tensor> tensors, const Progress& progress,
                                    std::span<CodeCounts> codes) {
  const Pieces pieces(tensors.size(), kPieceElements, [&](std::size_t i) { return values_in(tensors[i]); });
  std::vector<StatsPart> parts(pieces.size());
  std::uint64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.size_bytes();
  SharedProgress shared(progress, total);
  std::mutex mutex;
  pieces.for_each_run([&](std::size_t owner, std::uint64_t begin, std::uint64_t end, std::size_t overall) {
    const Tensor& tensor = tensors[owner];
    const DType stored = meaning_of(tensor.dtype()).stored;
    const std::uint64_t all = values_in(tensor);
    std::optional<BucketCounter> buckets;
    if (!codes.empty()) buckets.emplace(stored, std::min(all, end * kPieceElements) - begin * kPieceElements);
    for (std::uint64_t piece = begin; piece < end; ++piece) {
      const std::uint64_t first = piece * kPieceElements;
      const std::uint64_t count = std::min(kPieceElements, all - first);
      parts[overall++] = look_at_values(tensor, first, count, buckets ? &*buckets : nullptr);
      shared.add(bytes_of(stored, count));
    }
    if (!buckets) return;
    const CodeCounts found = buckets->finish();
    const std::lock_guard lock(mutex);
    codes[owner] = merged(codes[owner], found);
  });
  std::vector<TensorStats> results;
  results.reserve(tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    StatsPart whole;
    for (std::size_t piece = pieces.first(t); piece < pieces.end(t); ++piece) whole.append(parts[piece]);
    results.push_back(stats_of(whole));
  }
  ChangeCheck check_unchanged;
  for (const Tensor& tensor : tensors) check_unchanged(tensor);
  return results;
}

SummaryPass::SummaryPass(const Tensor& tensor)
    : tensor_(tensor), stored_(meaning_of(tensor.dtype()).stored), values_(values_in(tensor)) {}

void SummaryPass::run(std::uint64_t end, SharedProgress& progress) {
  const std::size_t before = parts_.size();
  const std::size_t after =
      std::max<std::size_t>(before, static_cast<std::size_t>((end + kPieceElements - 1) / kPieceElements));
  parts_.resize(after);
  std::mutex mutex;
  parallel_for(after - before, 1, [&](std::uint64_t first, std::uint64_t last) {
    BucketCounter buckets(stored_, std::min((last - first) * kPieceElements, values_));
    for (std::uint64_t piece = before + first; piece < before + last; ++piece) {
      const std::uint64_t count = std::min(kPieceElements, values_ - piece * kPieceElements);
      parts_[piece] = look_at_values(tensor_, piece * kPieceElements, count, &buckets);
      progress.add(bytes_of(stored_, count));
    }
    const CodeCounts found = buckets.finish();
    const std::lock_guard lock(mutex);
    codes_ = merged(codes_, found);
  });
}

Summary SummaryPass::finish() const {
  StatsPart whole;
  for (const StatsPart& part : parts_) whole.append(part);
  const TensorStats stats = stats_of(whole);
  return {stats, values_, buckets_of(stored_, codes_, stats)};
}

double TensorStats::l2() const noexcept {
  return finite() == 0 ? 0 : std::hypot(mean, std) * std::sqrt(static_cast<double>(finite()));
}

std::vector<TensorStats> stats(std::span<const Tensor> tensors, const Progress& progress) {
  return stats_pass(tensors, progress, {});
}

std::uint64_t count_not_finite(const Tensor& tensor) {
  const DType stored = meaning_of(tensor.dtype()).stored;
  const auto what = not_finite(stored);
  if (!what) return 0;
  std::uint64_t count = 0;
  for_each_block(tensor, [&](std::uint64_t, std::span<const std::byte> block) {
    switch (info(stored).bits) {
      case 64:
        count += count_matches<std::uint64_t>(block, *what);
        break;
      case 32:
        count += count_matches<std::uint32_t>(block, *what);
        break;
      case 16:
        count += count_matches<std::uint16_t>(block, *what);
        break;
      default:
        count += count_matches<std::uint8_t>(block, *what);
        break;
    }
  });
  return count;
}

TensorStats stats(const Tensor& tensor) {
  return stats(std::span(&tensor, 1)).front();
}

}  // namespace ballast
