// SPDX-License-Identifier: Apache-2.0
// A file encrypted with age, as the bytes inside it: decrypted where they are read, and nowhere else. Formats
// see a ByteSource like any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ballast/byte_source.h"
#include "seal/chunks.h"
#include "seal/encrypted_source.h"
#include "seal/keys.h"
#include "seal/recent_chunks.h"

namespace ballast::seal {

class AgeSource final : public EncryptedSource {
 public:
  /// The header is proven and the last chunk opened before it returns: a file that was cut short is refused
  /// here. Errors are those of read_header() and unwrap(); Errc::bad_tag for chunks, now and when they are
  /// read.
  static std::shared_ptr<const AgeSource> open(std::shared_ptr<const ByteSource> sealed,
                                               const GivenKeys& given);

  /// How many chunks were decrypted so far.
  [[nodiscard]] std::uint64_t opened_chunks() const noexcept { return opened_; }

 private:
  AgeSource(std::shared_ptr<const ByteSource> sealed, const Chunks& chunks, const Key& key);
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override;
  void open_chunk(Aead& aead, std::uint64_t index, std::span<std::byte> buffer,
                  std::span<std::byte> out) const;

  Chunks chunks_;
  Key key_;
  mutable std::atomic<std::uint64_t> opened_{0};
  mutable RecentChunks recent_{8 * kChunkBytes};
};

/// "model.pt.age" holds "model.pt".
[[nodiscard]] std::string inner_name(std::string_view name);

/// Whether it begins like a file of age's.
[[nodiscard]] bool is_sealed(const ByteSource& source);

/// `source` itself, or what is in it where it is encrypted.
[[nodiscard]] std::shared_ptr<const ByteSource> unsealed(std::shared_ptr<const ByteSource> source,
                                                         const GivenKeys& given);

}  // namespace ballast::seal
