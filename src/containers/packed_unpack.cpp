// SPDX-License-Identifier: Apache-2.0
// Blocks, unpacked: every field is checked before it is used.
#include <cstring>

#include "base/bytes.h"
#include "base/fail.h"
#include "containers/packed_block.h"

namespace ballast::packed {
namespace {

// Elements at a time, so that their exponents stay in the first cache.
constexpr std::size_t kAtOnce = std::size_t{64} * kGroup;

void require_size(std::size_t found, std::size_t expected, const std::string& where) {
  if (found != expected)
    fail(Errc::bad_packed, where, "the block has {} bytes, its fields ask for {}", found, expected);
}

}  // namespace

void BlockUnpacker::unpack_fast(Split how, std::span<const std::byte> block, std::span<std::byte> raw,
                                const std::string& where) {
  if (how != Split::bf16 && how != Split::f32)
    fail(Errc::bad_packed, where, "kind 2 is for BF16 and F32 alone");
  const std::size_t count = raw.size() / element_bytes(how);
  const std::size_t groups = groups_of(count);
  const auto base = std::to_integer<std::uint8_t>(block[1]);
  const auto said = load_le<std::uint32_t>(block.data() + 4);
  if (base > kMostBase) fail(Errc::bad_packed, where, "base {} is above {}", base, kMostBase);
  if (said > count) fail(Errc::bad_packed, where, "{} escapes among {} elements", said, count);
  require_size(block.size(), kBlockHead + groups * kGroupBytes + rest_planes(how) * count + said, where);
  const std::byte* masks = block.data() + kBlockHead;
  if (const std::size_t escapes = count_escapes(masks, groups, isa_); escapes != said)
    fail(Errc::bad_packed, where, "{} codes are escapes, the block says {}", escapes, said);
  if (const std::size_t used = count % kGroup; used != 0) {
    const std::byte* last = masks + (groups - 1) * kGroupBytes;
    for (std::size_t k = 0; k < 3; ++k)
      if (load_le<std::uint64_t>(last + 8 * k) >> used != 0)
        fail(Errc::bad_packed, where, "a mask has bits beyond its {} elements", used);
  }
  Planes<const std::byte> planes;
  for (std::size_t p = 0; p < rest_planes(how); ++p)
    planes.rest[p] = masks + groups * kGroupBytes + p * count;
  const std::byte* escapes = masks + groups * kGroupBytes + rest_planes(how) * count;
  planes_.resize(kAtOnce);
  planes.exponents = planes_.data();
  for (std::size_t at = 0; at < count; at += kAtOnce) {
    const std::size_t some = std::min(kAtOnce, count - at);
    escapes +=
        decode_codes(masks + at / kGroup * kGroupBytes, groups_of(some), base, escapes, planes_.data(), isa_);
    join(how, planes, raw.subspan(at * element_bytes(how), some * element_bytes(how)), isa_);
    for (std::size_t p = 0; p < rest_planes(how); ++p) planes.rest[p] += some;
  }
}

void BlockUnpacker::unpack_small(Split how, std::span<const std::byte> block, std::span<std::byte> raw,
                                 const std::string& where) {
  const std::size_t count = raw.size() / element_bytes(how);
  const std::size_t number = element_bytes(how);
  if (const auto said = load_le<std::uint32_t>(block.data() + 4); said != number)
    fail(Errc::bad_packed, where, "{} planes, elements of {} bytes have {}", said, number, number);
  if (block[1] != std::byte{0}) fail(Errc::bad_packed, where, "a base, which kind 1 does not have");
  const std::size_t table = kBlockHead + 4 * number;
  if (block.size() < table) fail(Errc::bad_packed, where, "the block ends in its {} plane sizes", number);
  std::uint64_t all = table;
  for (std::size_t p = 0; p < number; ++p) {
    const auto size = load_le<std::uint32_t>(block.data() + kBlockHead + 4 * p);
    if (size > count) fail(Errc::bad_packed, where, "plane {} has {} bytes for {} elements", p, size, count);
    all += size;
  }
  require_size(block.size(), static_cast<std::size_t>(all), where);
  planes_.resize(raw.size());
  std::array<const std::byte*, kMostRest + 1> places{};
  std::size_t at = table;
  for (std::size_t p = 0; p < number; ++p) {
    const auto size = load_le<std::uint32_t>(block.data() + kBlockHead + 4 * p);
    places[p] = block.data() + at;
    if (size != count) {
      if (!decompressor_) decompressor_.emplace();
      const auto plane = std::span(planes_).subspan(p * count, count);
      decompressor_->decompress(block.subspan(at, size), plane, where);
      places[p] = plane.data();
    }
    at += size;
  }
  join(how, {.exponents = places[0], .rest = {places[1], places[2], places[3]}}, raw, isa_);
}

void BlockUnpacker::unpack(Split how, std::span<const std::byte> block, std::span<std::byte> raw,
                           const std::string& where) {
  if (block.size() < kBlockHead)
    fail(Errc::bad_packed, where, "a block of {} bytes has no head", block.size());
  if (load_le<std::uint16_t>(block.data() + 2) != 0)
    fail(Errc::bad_packed, where, "bytes 2 and 3 of the block are not 0");
  switch (static_cast<BlockKind>(block[0])) {
    case BlockKind::fast:
      return unpack_fast(how, block, raw, where);
    case BlockKind::small:
      return unpack_small(how, block, raw, where);
    case BlockKind::raw:
      if (block[1] != std::byte{0} || load_le<std::uint32_t>(block.data() + 4) != 0)
        fail(Errc::bad_packed, where, "a raw block whose other fields are not 0");
      require_size(block.size(), kBlockHead + raw.size(), where);
      if (!raw.empty()) std::memcpy(raw.data(), block.data() + kBlockHead, raw.size());
      return;
  }
  fail(Errc::bad_packed, where, "a block of kind {}; 0, 1 and 2 are known", std::to_integer<int>(block[0]));
}

}  // namespace ballast::packed
