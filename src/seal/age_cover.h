// SPDX-License-Identifier: Apache-2.0
// A file that is encrypted while it is written, in any order and from any thread. A chunk can be encrypted
// only once it is whole: parts of chunks wait in memory, and where they are very many, on the disk under a
// key that only this process ever has. No plain text is written anywhere.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_cover.h"
#include "seal/chunks.h"
#include "seal/primitives.h"

namespace ballast::seal {

class AgeCover final : public FileCover {
 public:
  /// `header` is for `key`, a file key of this file alone.
  AgeCover(std::string header, const FileKey& key);

  void begin(Disk disk) override;
  [[nodiscard]] std::uint64_t reserve(std::uint64_t size) override;
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  [[nodiscard]] std::uint64_t size() const override;
  void finish() override;

  /// Parts of chunks that wait in memory at most; for tests.
  static constexpr std::size_t kMostWaiting = 256;

 private:
  struct Part {
    std::vector<std::byte> bytes;  // empty: on the disk
    std::size_t filled = 0;        // bytes that came
    std::optional<Nonce> spilled;  // under which it lies there
    std::uint64_t touched = 0;
  };

  using Parts = std::map<std::uint64_t, Part>;

  void grow(std::uint64_t size);
  [[nodiscard]] Part& part_in_memory(std::uint64_t index);
  [[nodiscard]] std::vector<std::byte> take_whole(std::uint64_t index);
  void write_part(std::uint64_t index, std::size_t from, std::span<const std::byte> bytes);
  void require_open(std::uint64_t index) const;
  void mark_done(std::uint64_t index);
  void write_chunk(std::uint64_t index, bool is_last, std::span<const std::byte> plain);
  void spill_one();
  [[nodiscard]] std::vector<std::byte> spilled_bytes(std::uint64_t index, const Nonce& nonce) const;
  [[nodiscard]] std::vector<std::byte> chunk_so_far(std::uint64_t index) const;

  std::string header_;
  std::array<std::byte, kPayloadNonceBytes> nonce_{};
  Key key_;
  Key spill_key_;
  Disk disk_;
  mutable std::mutex mutex_;  // of all that follows
  Chunks chunks_;
  Parts parts_;
  std::map<std::uint64_t, std::uint64_t> waiting_;  // in memory: when it was touched last, and which it is
  std::uint64_t clock_ = 0;
  std::uint64_t spills_ = 0;
  std::vector<bool> done_;
};

/// A cover with a new file key, for `recipients` or a passphrase; errors are wrap()'s.
[[nodiscard]] std::unique_ptr<FileCover> age_cover(const std::vector<std::string>& recipients,
                                                   const std::string& passphrase_file);

}  // namespace ballast::seal
