// SPDX-License-Identifier: Apache-2.0
// An encrypted file of ten gigabytes that is nowhere: each of its chunks is sealed when somebody asks for it,
// and it is written down which those are.
#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "ballast/io.h"
#include "seal/age_files.h"

namespace ballast::seal {
namespace {

constexpr std::int64_t kRows = 1'000'000;
constexpr std::int64_t kColumns = 2'500;
constexpr std::uint64_t kBytes = std::uint64_t{kRows} * kColumns * 4;

std::uint32_t value_at(std::uint64_t index) {
  return static_cast<std::uint32_t>(index * 2654435761U);
}

// A Safetensors file with one tensor, byte by byte.
class LargePlain {
 public:
  LargePlain() {
    header_ = fmt::format(R"({{"w":{{"dtype":"U32","shape":[{},{}],"data_offsets":[0,{}]}}}})", kRows,
                          kColumns, kBytes);
    header_.resize((header_.size() + 7) / 8 * 8, ' ');
    std::string size(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(header_.size() >> 8 * i & 0xFFU);
    header_ = size + header_;
  }

  [[nodiscard]] std::uint64_t size() const { return header_.size() + kBytes; }
  [[nodiscard]] std::uint64_t data_start() const { return header_.size(); }

  // Headers and chunks are of whole values.
  [[nodiscard]] std::string read(std::uint64_t offset, std::size_t size) const {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; i += 4) {
      const std::uint64_t at = offset + i;
      if (at < header_.size()) {
        header_.copy(text.data() + i, 4, static_cast<std::size_t>(at));
      } else {
        const std::uint32_t value = value_at((at - header_.size()) / 4);
        std::memcpy(text.data() + i, &value, 4);
      }
    }
    return text;
  }

 private:
  std::string header_;
};

class LargeSealed final : public ByteSource {
 public:
  static std::shared_ptr<const LargeSealed> make() {
    std::string head = write_header(wrap(some_file_key(), {kRecipient}, ""), some_file_key());
    head += some_text(kPayloadNonceBytes);
    const LargePlain plain;
    const Chunks chunks{.start = head.size(), .size = plain.size()};
    return std::shared_ptr<const LargeSealed>(new LargeSealed(std::move(head), chunks));
  }

  [[nodiscard]] std::uint64_t last() const { return chunks_.last(); }
  [[nodiscard]] std::uint64_t data_start() const { return plain_.data_start(); }

  /// Those that were asked for since the last time, and how many bytes.
  [[nodiscard]] std::pair<std::set<std::uint64_t>, std::uint64_t> asked() const {
    const std::lock_guard lock(mutex_);
    return {std::exchange(asked_, {}), std::exchange(bytes_, 0)};
  }

 private:
  LargeSealed(std::string head, const Chunks& chunks)
      : ByteSource("large.safetensors.age", chunks.end()), head_(std::move(head)), chunks_(chunks) {}

  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    bytes_ += out.size();
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t at = offset + done;
      const std::uint64_t index = at < chunks_.start ? 0 : (at - chunks_.start) / kSealedChunkBytes;
      const std::string piece = at < chunks_.start ? head_ : sealed(index);
      const auto from = static_cast<std::size_t>(at < chunks_.start ? at : at - chunks_.offset(index));
      const std::size_t count = std::min(piece.size() - from, out.size() - done);
      std::memcpy(out.data() + done, piece.data() + from, count);
      done += count;
    }
  }

  [[nodiscard]] std::string sealed(std::uint64_t index) const {
    asked_.insert(index);
    const std::string plain = plain_.read(index * kChunkBytes, chunks_.plain_bytes(index));
    std::string out(plain.size() + kTagBytes, '\0');
    const std::string nonce = head_.substr(head_.size() - kPayloadNonceBytes);
    Aead(hkdf(some_file_key().bytes(), as_bytes(nonce), "payload"))
        .seal(chunk_nonce(index, index == chunks_.last()), as_bytes(plain),
              std::as_writable_bytes(std::span(out)));
    return out;
  }

  std::string head_;
  Chunks chunks_;
  LargePlain plain_;
  mutable std::mutex mutex_;
  mutable std::set<std::uint64_t> asked_;
  mutable std::uint64_t bytes_ = 0;
};

std::set<std::uint64_t> chunks_of(std::uint64_t first, std::uint64_t behind) {
  std::set<std::uint64_t> chunks;
  for (std::uint64_t i = first / kChunkBytes; i <= (behind - 1) / kChunkBytes; ++i) chunks.insert(i);
  return chunks;
}

TEST(LargeEncrypted, ASliceOfTenGigabytesReadsItsChunksAndNoOthers) {
  const auto sealed = LargeSealed::make();
  ASSERT_GT(sealed->size(), 10'000'000'000U);
  const Checkpoint checkpoint =
      open(std::static_pointer_cast<const ByteSource>(sealed), {.identities = {kIdentity}});
  const auto [opening, opening_bytes] = sealed->asked();
  EXPECT_EQ(opening, (std::set<std::uint64_t>{0, sealed->last()}));
  EXPECT_LT(opening_bytes, 4 * kSealedChunkBytes);
  const Tensor tensor = checkpoint.tensor("w");
  for (const auto& [row, count] : {std::pair<std::int64_t, std::int64_t>{0, 1},
                                   {500'000, 1},
                                   {700'001, 40},
                                   {kRows - 3, 3},
                                   {123'456, 1'000}}) {
    const auto first = static_cast<std::uint64_t>(row) * kColumns;
    std::vector<std::uint32_t> found(static_cast<std::size_t>(count * kColumns));
    tensor.narrow(0, row, count).read(0, std::as_writable_bytes(std::span(found)));
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], value_at(first + i)) << row;
    const auto [chunks, bytes] = sealed->asked();
    const std::uint64_t start = sealed->data_start() + first * 4;
    std::set<std::uint64_t> own = chunks_of(start, start + found.size() * 4);
    EXPECT_TRUE(std::includes(own.begin(), own.end(), chunks.begin(), chunks.end())) << row;
    EXPECT_EQ(bytes % kSealedChunkBytes, 0U) << row;  // whole chunks, each once: the last is held already
    EXPECT_EQ(bytes / kSealedChunkBytes, chunks.size()) << row;
  }
}

}  // namespace
}  // namespace ballast::seal
