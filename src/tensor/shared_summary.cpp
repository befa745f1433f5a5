// SPDX-License-Identifier: Apache-2.0
#include "tensor/shared_summary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tensor/meaning.h"

namespace ballast {
namespace {

std::uint64_t blocks_before(std::uint64_t value) {
  return (value + kStatsBlock - 1) / kStatsBlock;
}

// The last block of a tensor may be short: filled up with NaN, which is not counted.
template <class T>
StatsPart look_at_block(const T* numbers, std::size_t size, Isa isa) {
  if (size == kStatsBlock) return look_at_padded(numbers, size, 0, isa);
  std::array<T, kStatsBlock> block;
  std::copy_n(numbers, size, block.begin());
  const std::size_t padded = (size + kStatsLanes - 1) / kStatsLanes * kStatsLanes;
  std::fill(block.begin() + static_cast<std::ptrdiff_t>(size),
            block.begin() + static_cast<std::ptrdiff_t>(padded), std::numeric_limits<T>::quiet_NaN());
  return look_at_padded(block.data(), padded, padded - size, isa);
}

}  // namespace

SharedSummary::SharedSummary(const Tensor& tensor)
    : stored_(meaning_of(tensor.dtype()).stored), values_(values_in(tensor)) {}

void SharedSummary::expect(std::uint64_t begin, std::uint64_t end) {
  first_block_ = blocks_before(begin);
  blocks_.assign(static_cast<std::size_t>(blocks_before(end) - first_block_), StatsPart());
}

std::uint64_t SharedSummary::reach(std::uint64_t first, std::uint64_t count) const {
  return std::min(blocks_before(first + count) * kStatsBlock, values_) - first;
}

template <class T>
void SharedSummary::add(const std::byte* raw, const T* numbers, std::uint64_t first, std::uint64_t count,
                        BucketCounter& counter) {
  const Isa isa = best_isa();
  const std::uint64_t size = info(stored_).bits / 8;
  const std::uint64_t end = first + count;
  // Block by block, so that what was just looked at is counted while it lies in the first-level cache.
  for (std::uint64_t at = first; at < end;) {
    const std::uint64_t block = at / kStatsBlock;
    const std::uint64_t until = std::min(end, (block + 1) * kStatsBlock);
    const T* here = numbers + (at - first);
    if (at % kStatsBlock == 0)
      blocks_[block - first_block_] =
          look_at_block(here, static_cast<std::size_t>(std::min(kStatsBlock, values_ - at)), isa);
    counter.add(raw + (at - first) * size, here, static_cast<std::size_t>(until - at));
    at = until;
  }
}

template void SharedSummary::add(const std::byte*, const float*, std::uint64_t, std::uint64_t,
                                 BucketCounter&);
template void SharedSummary::add(const std::byte*, const double*, std::uint64_t, std::uint64_t,
                                 BucketCounter&);

// In the order in which stats() combines them: blocks to pieces, pieces to the whole.
void SharedSummary::settle() {
  for (const StatsPart& block : blocks_) {
    piece_.append(block);
    if (++settled_ % (kStatsPiece / kStatsBlock) == 0) whole_.append(std::exchange(piece_, StatsPart()));
  }
  blocks_.clear();
}

BucketCounter SharedSummary::take_counter() {
  const std::lock_guard lock(mutex_);
  if (counters_.empty()) return {stored_, values_};
  BucketCounter counter = std::move(counters_.back());
  counters_.pop_back();
  return counter;
}

void SharedSummary::give_back(BucketCounter counter) {
  const std::lock_guard lock(mutex_);
  counters_.push_back(std::move(counter));
}

Summary SharedSummary::finish() {
  whole_.append(std::exchange(piece_, StatsPart()));
  CodeCounts codes;
  for (BucketCounter& counter : counters_) codes = merged(codes, counter.finish());
  const TensorStats stats = stats_of(whole_);
  return {stats, values_, buckets_of(stored_, codes, stats)};
}

}  // namespace ballast
