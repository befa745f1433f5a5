// SPDX-License-Identifier: Apache-2.0
// Files of age's for tests, put together by hand: whole ones, and ones that no tool would write.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "seal/age_source.h"
#include "seal/chunks.h"
#include "seal/header.h"
#include "seal/keys.h"

namespace ballast::seal {

/// Made by age-keygen, for tests alone.
inline const std::string kIdentity =
    "AGE-SECRET-KEY-1EEG2W90H3P4A4JKCV2PECU8SX9ZJ6JHJZM3CP7Y9PLC68542L8ESWKXUC3";
inline const std::string kRecipient = "age13rx8xzcg3us35n58jlt4uhgtlsckpfhramnchct40cfq9nqfmfaqemrets";
inline const std::string kOtherIdentity =
    "AGE-SECRET-KEY-14GKMK05U6WWQCMLHMMJ3G9WUMECV76M87T6RJH9WA4EGK5XS3K5Q5AF0TY";
inline const std::string kOtherRecipient = "age12x67mxpr24xvhfuudel4ul0zdggurkn3jwfcj90kvm8fn5scyy5qvglkum";

inline std::string some_text(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 12345;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  return text;
}

/// The payload as the specification says it, in a plain loop.
inline std::string payload_of(const std::string& plain, const FileKey& key) {
  const std::string nonce = some_text(kPayloadNonceBytes);
  Aead aead(hkdf(key.bytes(), as_bytes(nonce), "payload"));
  std::string out = nonce;
  for (std::size_t at = 0, index = 0; at == 0 || at < plain.size(); at += kChunkBytes, ++index) {
    const std::string piece = plain.substr(at, kChunkBytes);
    std::string sealed(piece.size() + kTagBytes, '\0');
    aead.seal(chunk_nonce(index, at + kChunkBytes >= plain.size()), as_bytes(piece),
              std::as_writable_bytes(std::span(sealed)));
    out += sealed;
  }
  return out;
}

inline FileKey some_file_key() {
  FileKey key;
  std::size_t i = 0;
  for (std::byte& byte : key.bytes()) byte = static_cast<std::byte>(i++ * 7 + 1);
  return key;
}

/// With a right MAC, whatever the stanzas are.
inline std::string age_file(const std::string& plain, const std::vector<Stanza>& stanzas) {
  const FileKey key = some_file_key();
  return write_header(stanzas, key) + payload_of(plain, key);
}

inline std::string age_file(const std::string& plain,
                            const std::vector<std::string>& recipients = {kRecipient}) {
  return age_file(plain, wrap(some_file_key(), recipients, ""));
}

/// Counts what is asked of it.
class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(std::string bytes)
      : ByteSource("model.pt.age", bytes.size()), bytes_(std::move(bytes)) {}

  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return read_; }

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    read_ += out.size();
  }

  std::string bytes_;
  mutable std::uint64_t read_ = 0;
};

inline std::shared_ptr<const CountingSource> source_of(const std::string& bytes) {
  return std::make_shared<const CountingSource>(bytes);
}

inline std::shared_ptr<const AgeSource> open_age(const std::string& bytes,
                                                 const GivenKeys& given = {{kIdentity}, ""}) {
  return AgeSource::open(source_of(bytes), given);
}

inline std::string text_of(const ByteSource& source) {
  return std::string(as_text(source.read(0, source.size())));
}

}  // namespace ballast::seal
