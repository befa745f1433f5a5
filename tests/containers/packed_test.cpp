// SPDX-License-Identifier: Apache-2.0
// Blocks and blobs of packed tensors: what is packed unpacks to the same bits, whatever the dtype, the
// length, the content, the codec and the instructions; what is not built as it should be is refused.
#include "containers/packed.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>

#include "base/error_of.h"
#include "base/hash_xxh3.h"
#include "tensor/source_storage.h"

namespace ballast::packed {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Isa> isas_here() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (isa <= best_isa()) all.push_back(isa);
  return all;
}

constexpr std::array<std::size_t, 12> kLengths = {1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 20000};
constexpr std::array kSplits = {Split::bytes, Split::f16, Split::bf16, Split::f32};

// Bit patterns of F32, cut to the width of the element from above; a byte is taken as it is.
Bytes elements(Split how, std::size_t count, const std::function<std::uint32_t()>& next) {
  const std::size_t width = element_bytes(how);
  Bytes raw(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = next() >> (32 - 8 * width);
    std::memcpy(raw.data() + i * width, &bits, width);
  }
  return raw;
}

std::map<std::string, std::function<Bytes(Split, std::size_t)>> contents() {
  static std::mt19937 random(11);
  const auto normal = [] {
    static std::normal_distribution<float> weights(0, 0.02F);
    return std::bit_cast<std::uint32_t>(weights(random));
  };
  const auto all = [](std::uint32_t bits) {
    return [bits](Split how, std::size_t count) { return elements(how, count, [bits] { return bits; }); };
  };
  return {
      {"weights", [=](Split how, std::size_t count) { return elements(how, count, normal); }},
      {"nan", all(0x7FC01234U)},
      {"inf", all(0xFF800000U)},
      {"denormal", all(0x00000001U)},
      {"zero", all(0)},
      {"one exponent",
       [](Split how, std::size_t count) {
         return elements(how, count,
                         [] { return 0x3D000000U | (static_cast<std::uint32_t>(random()) & 0x807FFFFFU); });
       }},
      {"largest exponents",
       [](Split how, std::size_t count) {
         return elements(how, count,
                         [] { return 0x7C000000U | (static_cast<std::uint32_t>(random()) & 0x83FFFFFFU); });
       }},
      {"bf16 as f32",
       [=](Split how, std::size_t count) {
         return elements(how, count, [=] { return normal() & 0xFFFF0000U; });
       }},
      {"random",
       [](Split how, std::size_t count) {
         return elements(how, count, [] { return static_cast<std::uint32_t>(random()); });
       }},
  };
}

Bytes with_slack(const Bytes& block) {
  Bytes copy = block;
  copy.resize(block.size() + BlockUnpacker::kSlack, std::byte{0xA5});
  return copy;
}

void unpack_into(Bytes& raw, const Bytes& block, Split how, Isa isa) {
  const Bytes padded = with_slack(block);
  BlockUnpacker(isa).unpack(how, std::span(padded).first(block.size()), raw, "block");
}

Bytes packed_block(BlockKind kind, Split how, const Bytes& raw, Isa isa) {
  BlockPacker packer(isa);
  Bytes out;
  packer.pack(kind, how, packer.plan(kind, how, raw), raw, out);
  return out;
}

bool is_fast(Split how) {
  return how == Split::bf16 || how == Split::f32;
}

TEST(PackedBlock, UnpacksToTheSameBitsAndIsTheSameForAllInstructions) {
  int cases = 0;
  for (const auto& [what, make] : contents()) {
    for (const Split how : kSplits) {
      for (const std::size_t count : kLengths) {
        for (const BlockKind kind : {BlockKind::small, BlockKind::fast}) {
          if (kind == BlockKind::fast && !is_fast(how)) continue;
          SCOPED_TRACE(fmt::format("{}, split {}, {} elements, kind {}", what, static_cast<int>(how), count,
                                   static_cast<int>(kind)));
          const Bytes raw = make(how, count);
          const Bytes block = packed_block(kind, how, raw, Isa::scalar);
          ASSERT_LE(block.size(), kBlockHead + raw.size());
          for (const Isa isa : isas_here()) {
            ASSERT_EQ(packed_block(kind, how, raw, isa), block);
            Bytes back(raw.size(), std::byte{0xEE});
            unpack_into(back, block, how, isa);
            ASSERT_EQ(back, raw);
            ++cases;
          }
        }
      }
    }
  }
  EXPECT_GE(cases, 9 * 12 * 6);
}

TEST(PackedBlock, RandomBytesStayRawAndWeightsShrinkAsFarAsTheirEntropyLets) {
  std::map<std::string, std::function<Bytes(Split, std::size_t)>> of = contents();
  for (const BlockKind kind : {BlockKind::small, BlockKind::fast}) {
    EXPECT_EQ(packed_block(kind, Split::bf16, of["random"](Split::bf16, 1U << 17U), best_isa())[0],
              static_cast<std::byte>(BlockKind::raw));
  }
  const Bytes bf16 = of["weights"](Split::bf16, 1U << 17U);
  const Bytes f32 = of["weights"](Split::f32, 1U << 16U);
  const auto ratio = [](BlockKind kind, Split how, const Bytes& raw) {
    return static_cast<double>(packed_block(kind, how, raw, best_isa()).size()) /
           static_cast<double>(raw.size());
  };
  EXPECT_LE(ratio(BlockKind::small, Split::bf16, bf16), 0.67);
  EXPECT_LE(ratio(BlockKind::fast, Split::bf16, bf16), 0.71);
  EXPECT_LE(ratio(BlockKind::small, Split::f32, f32), 0.84);
  EXPECT_LE(ratio(BlockKind::fast, Split::f32, f32), 0.86);
  // What was BF16 and is F32 has two planes of zeros.
  EXPECT_LE(ratio(BlockKind::small, Split::f32, of["bf16 as f32"](Split::f32, 1U << 16U)), 0.34);
}

// By the words of the specification, a bit at a time.
TEST(PackedBlock, CodesAreWhatTheSpecificationSays) {
  std::mt19937 random(3);
  for (const std::size_t count : {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{200}}) {
    Bytes exponents(count);
    for (std::byte& e : exponents) e = static_cast<std::byte>(random() % 12 + 100);
    const auto base = static_cast<std::uint8_t>(102);
    for (const Isa isa : isas_here()) {
      Bytes masks(groups_of(count) * kGroupBytes);
      Bytes escapes(count + kGroup);
      escapes.resize(encode_codes(exponents, base, masks.data(), escapes.data(), isa));
      Bytes expected;
      for (std::size_t i = 0; i < groups_of(count) * kGroup; ++i) {
        const int distance = i < count ? std::to_integer<int>(exponents[i]) - base : 0;
        const unsigned code = distance >= 0 && distance <= 6 ? static_cast<unsigned>(distance) : 7;
        for (unsigned k = 0; k < 3; ++k) {
          const std::byte byte = masks[i / 64 * 24 + k * 8 + i % 64 / 8];
          ASSERT_EQ(std::to_integer<unsigned>(byte) >> (i % 8) & 1U, code >> k & 1U);
        }
        if (code == 7) expected.push_back(exponents[i]);
      }
      EXPECT_EQ(escapes, expected);
      EXPECT_EQ(count_escapes(masks.data(), groups_of(count), isa), expected.size());
    }
  }
}

TEST(PackedBlock, TheBaseLeavesTheFewestEscapesOfAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Counts counts{};
    for (int i = 0; i < 40; ++i) ++counts[random() % 256];
    std::uint32_t fewest = 40;
    for (int base = 0; base <= 249; ++base) {
      std::uint32_t escapes = 0;
      for (int e = 0; e < 256; ++e)
        if (e < base || e > base + 6) escapes += counts[static_cast<std::size_t>(e)];
      fewest = std::min(fewest, escapes);
    }
    EXPECT_EQ(best_base(counts).escapes, fewest);
  }
}

// A packed tensor as it lies in a file.
struct Blob {
  Bytes bytes;
  Bytes raw;
  Split how;
  std::uint64_t sum = 0;
};

Blob blob_of(BlockKind kind, Split how, const Bytes& raw) {
  Blob blob{.bytes = {}, .raw = raw, .how = how};
  const std::size_t step = element_bytes(how) << written_log2(how);
  std::vector<std::uint32_t> sizes;
  Bytes blocks;
  BlockPacker packer;
  Bytes out;
  for (std::size_t at = 0; at < raw.size(); at += step) {
    const auto part = std::span(raw).subspan(at, std::min(step, raw.size() - at));
    packer.pack(kind, how, packer.plan(kind, how, part), part, out);
    sizes.push_back(static_cast<std::uint32_t>(out.size()));
    blocks.insert(blocks.end(), out.begin(), out.end());
    blocks.resize(padded_block(blocks.size()));
  }
  blob.bytes = blob_head(how, raw.size() / element_bytes(how), sizes);
  blob.bytes.insert(blob.bytes.end(), blocks.begin(), blocks.end());
  Xxh3 hash;
  hash.update(raw);
  blob.sum = hash.digest();
  return blob;
}

std::shared_ptr<const Storage> held(const Bytes& bytes) {
  auto storage = Storage::heap(bytes.size());
  std::copy(bytes.begin(), bytes.end(), storage->mutable_data());
  return storage;
}

std::shared_ptr<const Storage> opened(const Blob& blob) {
  return unpacked_storage(held(blob.bytes), {"file", "w", blob.how, blob.raw.size(), blob.sum});
}

TEST(PackedStorage, ReadsEveryPartOfEveryLengthAroundABlock) {
  std::mt19937 random(9);
  auto of = contents();
  for (const Split how : kSplits) {
    const std::size_t block = std::size_t{1} << written_log2(how);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64},
                                    std::size_t{65}, block - 1, block, block + 1, 2 * block + 777}) {
      for (const BlockKind kind : {BlockKind::small, BlockKind::fast}) {
        if (kind == BlockKind::fast && !is_fast(how)) continue;
        const Blob blob = blob_of(kind, how, of["weights"](how, count));
        const auto storage = opened(blob);
        EXPECT_EQ(storage->packed_size(), blob.bytes.size());
        storage->check_sound(0, storage->size());
        for (int round = 0; round < 20; ++round) {
          const std::size_t from = blob.raw.empty() ? 0 : random() % blob.raw.size();
          const std::size_t size = blob.raw.empty() ? 0 : random() % (blob.raw.size() - from + 1);
          Bytes part(size);
          storage->read(from, part);
          ASSERT_TRUE(
              std::equal(part.begin(), part.end(), blob.raw.begin() + static_cast<std::ptrdiff_t>(from)));
        }
        EXPECT_FALSE(storage->ready());
        if (count > 0) {
          ASSERT_EQ(std::memcmp(storage->data(), blob.raw.data(), blob.raw.size()), 0);
        }
      }
    }
  }
}

// Counts the bytes that are read.
class Watched final : public Storage {
 public:
  explicit Watched(Bytes bytes) : Storage(bytes.size()), bytes_(std::move(bytes)) {}

  [[nodiscard]] const std::byte* data() const override { return bytes_.data(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    bytes_read += out.size();
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

  mutable std::uint64_t bytes_read = 0;

 private:
  Bytes bytes_;
  mutable std::mutex mutex_;
};

TEST(PackedStorage, ASliceReadsItsBlocksAlone) {
  const std::size_t block = std::size_t{1} << written_log2(Split::bf16);
  const Blob blob = blob_of(BlockKind::fast, Split::bf16, contents()["weights"](Split::bf16, 8 * block));
  const auto watched = std::make_shared<Watched>(blob.bytes);
  const auto storage = unpacked_storage(watched, {"file", "w", blob.how, blob.raw.size(), blob.sum});
  Bytes some(1000);
  storage->read(0, some);
  const std::uint64_t head = first_block(8);
  const std::uint64_t one = (blob.bytes.size() - head) / 8;
  EXPECT_LE(watched->bytes_read, head + one + one / 100);
  watched->bytes_read = 0;
  storage->read(5 * block * 2 - 500, some);  // across a border
  EXPECT_LE(watched->bytes_read, 2 * one + one / 50);
  EXPECT_TRUE(std::equal(some.begin(), some.end(),
                         blob.raw.begin() + static_cast<std::ptrdiff_t>(5 * block * 2 - 500)));
  watched->bytes_read = 0;
  for (std::size_t at = 0; at < 1000; ++at) storage->read(6 * block * 2 + at * 8, std::span(some).first(8));
  EXPECT_LE(watched->bytes_read, one + one / 50) << "small reads in order unpack a block once";
}

// The code of the refusal; none where the bytes come out as they were.
std::optional<Errc> verdict(const Blob& blob) {
  try {
    const auto storage = opened(blob);
    storage->check_sound(0, blob.raw.size());
    Bytes out(blob.raw.size());
    storage->read(0, out);
    EXPECT_EQ(out, blob.raw);
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

// Every bit of the blob: a refusal when it is read, or the checksum says so. What is left changes nothing:
// the size of blocks where there is one, and a bit or two of zstd's own padding.
TEST(PackedStorage, EveryFlippedBitIsSeenOrChangesNothing) {
  auto of = contents();
  std::map<std::optional<Errc>, int> seen;
  for (const Split how : kSplits) {
    for (const BlockKind kind : {BlockKind::small, BlockKind::fast}) {
      if (kind == BlockKind::fast && !is_fast(how)) continue;
      Blob blob = blob_of(kind, how, of["weights"](how, 300));
      for (std::size_t bit = 0; bit < blob.bytes.size() * 8; ++bit) {
        const auto mask = static_cast<std::byte>(1U << bit % 8);
        blob.bytes[bit / 8] ^= mask;
        const auto code = verdict(blob);
        ++seen[code];
        // The base is one exponent or another.
        const bool is_field =
            bit / 8 < first_block(1) + kBlockHead && bit / 8 != 5 && bit / 8 != first_block(1) + 1;
        if (is_field) {
          ASSERT_EQ(code, Errc::bad_packed) << "bit " << bit;
        }
        if (kind == BlockKind::fast && bit / 8 != 5) {
          ASSERT_TRUE(code) << "bit " << bit;
        }
        blob.bytes[bit / 8] ^= mask;
      }
    }
  }
  EXPECT_GT(seen[Errc::bad_packed], 5000);
  EXPECT_GT(seen[Errc::bad_crc], 5000);
  EXPECT_LT(seen[std::nullopt], 60);
  EXPECT_EQ(seen.size(), 3);
}

TEST(PackedStorage, EveryTruncationIsRefused) {
  const Blob whole = blob_of(BlockKind::fast, Split::bf16, contents()["weights"](Split::bf16, 500));
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    Blob cut = whole;
    cut.bytes.resize(size);
    Bytes out(cut.raw.size());
    ASSERT_EQ(code_of([&] { opened(cut)->read(0, out); }), Errc::bad_packed) << size;
  }
}

}  // namespace
}  // namespace ballast::packed
