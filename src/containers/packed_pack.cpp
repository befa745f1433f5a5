// SPDX-License-Identifier: Apache-2.0
// Blocks, packed.
#include <algorithm>
#include <bit>
#include <cstring>

#include "containers/packed_block.h"

namespace ballast::packed {
namespace {

constexpr unsigned kFraction = 12;  // bits of a logarithm

// By squaring, so that no two machines differ in a bit.
std::uint64_t fixed_log2(std::uint64_t value) {
  const auto whole = static_cast<unsigned>(std::bit_width(value | 1U)) - 1;
  std::uint64_t mantissa = (value << 31U) >> whole;  // in [1, 2), 31 bits behind the point; value < 2^33
  std::uint64_t result = whole;
  for (unsigned i = 0; i < kFraction; ++i) {
    mantissa = (mantissa * mantissa) >> 31U;
    const std::uint64_t bit = mantissa >> 32U;
    mantissa >>= bit;
    result = (result << 1U) | bit;
  }
  return result;
}

// Bytes that an ideal code of single bytes would need.
std::uint64_t ideal_bytes(const Counts& counts, std::uint64_t all) {
  std::uint64_t bits = 0;
  for (const std::uint32_t count : counts)
    if (count > 0) bits += count * (fixed_log2(all) - fixed_log2(count));
  return bits >> (kFraction + 3U);
}

// The head of a frame and its code table.
constexpr std::uint64_t kFrameBytes = 48;

// `out` has room for it.
void put_head(std::vector<std::byte>& out, BlockKind kind, std::uint8_t base, std::uint32_t number) {
  out[0] = static_cast<std::byte>(kind);
  out[1] = static_cast<std::byte>(base);
  out[2] = out[3] = std::byte{0};
  std::memcpy(out.data() + 4, &number, sizeof number);
}

std::size_t fast_size(Split how, std::size_t count, std::size_t escapes) {
  return kBlockHead + groups_of(count) * kGroupBytes + rest_planes(how) * count + escapes;
}

}  // namespace

Planes<std::byte> BlockPacker::split_into_planes(Split how, std::span<const std::byte> raw) {
  const std::size_t count = raw.size() / element_bytes(how);
  planes_.resize(raw.size());
  Planes<std::byte> planes{.exponents = planes_.data()};
  for (std::size_t p = 0; p < rest_planes(how); ++p) planes.rest[p] = planes_.data() + (p + 1) * count;
  split(how, raw, planes, isa_);
  return planes;
}

BlockPlan BlockPacker::plan(BlockKind kind, Split how, std::span<const std::byte> raw) {
  const std::size_t count = raw.size() / element_bytes(how);
  const Planes<std::byte> planes = split_into_planes(how, raw);
  const std::size_t raw_size = kBlockHead + raw.size();
  BlockPlan plan;
  std::uint64_t size = 0;
  if (kind == BlockKind::fast) {
    const Base base = best_base(counts_of({planes.exponents, count}));
    plan.base = base.value;
    size = fast_size(how, count, base.escapes);
  } else {
    size = kBlockHead + 4 * element_bytes(how);
    for (std::size_t p = 0; p < element_bytes(how); ++p) {
      const std::uint64_t ideal =
          ideal_bytes(counts_of(std::span(planes_).subspan(p * count, count)), count) + kFrameBytes;
      // Below 7.5 bits of 8, the exponents also above.
      const bool worth_it = p == 0 ? ideal < count : ideal * 16 < std::uint64_t{count} * 15;
      if (worth_it) plan.entropic |= static_cast<std::uint8_t>(1U << p);
      size += worth_it ? ideal : count;
    }
  }
  plan.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, raw_size));
  return plan;
}

bool BlockPacker::pack_fast(Split how, const BlockPlan& plan, std::span<const std::byte> raw,
                            std::vector<std::byte>& out) {
  if (plan.size >= kBlockHead + raw.size()) return false;
  const std::size_t count = raw.size() / element_bytes(how);
  const Planes<std::byte> planes = split_into_planes(how, raw);
  escapes_.resize(count + kGroup);
  const std::size_t masks = groups_of(count) * kGroupBytes;
  out.resize(kBlockHead + masks);
  const std::size_t escapes =
      encode_codes({planes.exponents, count}, plan.base, out.data() + kBlockHead, escapes_.data(), isa_);
  put_head(out, BlockKind::fast, plan.base, static_cast<std::uint32_t>(escapes));
  for (std::size_t p = 0; p < rest_planes(how); ++p)
    out.insert(out.end(), planes.rest[p], planes.rest[p] + count);
  out.insert(out.end(), escapes_.begin(), escapes_.begin() + static_cast<std::ptrdiff_t>(escapes));
  return true;
}

bool BlockPacker::pack_small(Split how, const BlockPlan& plan, std::span<const std::byte> raw,
                             std::vector<std::byte>& out) {
  if (plan.entropic == 0) return false;
  const std::size_t count = raw.size() / element_bytes(how);
  static_cast<void>(split_into_planes(how, raw));
  if (!compressor_) compressor_.emplace();
  std::size_t at = kBlockHead + 4 * element_bytes(how);
  out.resize(at + raw.size());
  put_head(out, BlockKind::small, 0, static_cast<std::uint32_t>(element_bytes(how)));
  for (std::size_t p = 0; p < element_bytes(how); ++p) {
    const auto plane = std::span<const std::byte>(planes_).subspan(p * count, count);
    const auto place = std::span(out).subspan(at, count);
    // A size of `count` says that the plane is raw: a frame is smaller.
    std::size_t size = 0;
    if ((plan.entropic >> p & 1U) != 0) size = compressor_->compress(plane, place.first(count - 1));
    if (size == 0) {
      std::copy(plane.begin(), plane.end(), place.begin());
      size = count;
    }
    const auto said = static_cast<std::uint32_t>(size);
    std::memcpy(out.data() + kBlockHead + 4 * p, &said, sizeof said);
    at += size;
  }
  out.resize(at);
  return at < kBlockHead + raw.size();
}

void BlockPacker::pack(BlockKind kind, Split how, const BlockPlan& plan, std::span<const std::byte> raw,
                       std::vector<std::byte>& out) {
  out.clear();
  if (kind == BlockKind::fast && pack_fast(how, plan, raw, out)) return;
  if (kind == BlockKind::small && pack_small(how, plan, raw, out)) return;
  out.resize(kBlockHead);
  put_head(out, BlockKind::raw, 0, 0);
  out.insert(out.end(), raw.begin(), raw.end());
}

}  // namespace ballast::packed
