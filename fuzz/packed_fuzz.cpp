// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packed tensor, as one block of it, as a whole file, and as weights to be packed. Beyond not
// crashing: every kind of vector instructions gives the same verdict and the same bytes, a part is a part of
// the whole, and what is packed unpacks to itself.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "containers/packed.h"
#include "watched.h"

namespace {

using namespace ballast;
using namespace ballast::packed;
using fuzzing::complain;
using Bytes = std::vector<std::byte>;

constexpr std::array kSplits = {Split::bytes, Split::f16, Split::bf16, Split::f32};

// The bytes, or none where they are refused.
std::optional<Bytes> unpacked(Split how, const Bytes& block, std::size_t count, Isa isa) {
  Bytes padded = block;
  padded.resize(block.size() + BlockUnpacker::kSlack);
  Bytes raw(count * element_bytes(how));
  // Kept: making zstd's contexts would take most of the time.
  static std::array unpackers = {BlockUnpacker(Isa::scalar), BlockUnpacker(Isa::avx2),
                                 BlockUnpacker(Isa::avx512)};
  try {
    unpackers[static_cast<std::size_t>(isa)].unpack(how, std::span(padded).first(block.size()), raw, "fuzz");
  } catch (const Error& error) {
    if (error.code() != Errc::bad_packed) complain("a block is refused for another reason");
    return std::nullopt;
  }
  return raw;
}

void check_block(Split how, std::size_t count, const Bytes& block) {
  const auto plain = unpacked(how, block, count, Isa::scalar);
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (isa <= best_isa() && unpacked(how, block, count, isa) != plain) complain("instructions differ");
}

void check_blob(Split how, std::size_t count, std::span<const std::byte> blob) {
  const auto stored = Storage::borrow(static_cast<const void*>(blob.data()), blob.size());
  const auto storage = unpacked_storage(stored, {"fuzz", "w", how, count * element_bytes(how), 0});
  Bytes whole(static_cast<std::size_t>(storage->size()));
  storage->read(0, whole);
  Bytes part(whole.size() / 3);
  const std::size_t from = whole.size() / 4;
  storage->read(from, part);
  if (!std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(from)))
    complain("a part is no part of the whole");
}

void check_round_trip(Split how, std::span<const std::byte> given) {
  const Bytes raw(given.begin(),
                  given.end() - static_cast<std::ptrdiff_t>(given.size() % element_bytes(how)));
  if (raw.empty()) return;
  for (const BlockKind kind : {BlockKind::small, BlockKind::fast}) {
    if (kind == BlockKind::fast && how != Split::bf16 && how != Split::f32) continue;
    static BlockPacker packer;
    Bytes block;
    packer.pack(kind, how, packer.plan(kind, how, raw), raw, block);
    if (block.size() > kBlockHead + raw.size()) complain("a block grew");
    for (const Isa isa : {Isa::scalar, best_isa()})
      if (unpacked(how, block, raw.size() / element_bytes(how), isa) != raw)
        complain("unpacked to something else");
  }
}

void check_file(std::string_view file) {
  const Checkpoint checkpoint =
      safetensors::parse(Storage::borrow(static_cast<const void*>(file.data()), file.size()));
  for (const Entry& entry : checkpoint) {
    if (entry.bytes > (1U << 20U)) continue;
    Bytes bytes(static_cast<std::size_t>(entry.bytes));
    try {
      entry.tensor().read(0, bytes);
    } catch (const Error&) {  // one tensor says nothing of the others
    }
  }
}

}  // namespace

// The first byte says what the others are and how elements fall apart, the next two how many there are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const Split how = kSplits[data[0] & 3U];
  const std::size_t count = data[1] | std::size_t{data[2]} << 8U;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(3);
  const fuzzing::Limits limits(size);
  try {
    switch (data[0] >> 2U & 3U) {
      case 0:
        check_blob(how, count, bytes);
        break;
      case 1:
        check_block(how, count, {bytes.begin(), bytes.end()});
        break;
      case 2:
        check_round_trip(how, bytes);
        break;
      default:
        check_file(as_text(bytes));
        break;
    }
  } catch (const Error&) {
  }
  return 0;
}
