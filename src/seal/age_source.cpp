// SPDX-License-Identifier: Apache-2.0
#include "seal/age_source.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/fail.h"

namespace ballast::seal {
namespace {

// How much plain text so many bytes of payload hold. Only an empty text ends in an empty chunk.
Chunks chunks_in(const ByteSource& sealed, std::uint64_t header_bytes) {
  const std::uint64_t left = sealed.size() - header_bytes;
  if (left < kPayloadNonceBytes + kTagBytes)
    fail(Errc::truncated, sealed.where(), "ends {} bytes behind the header of age, where {} are the least",
         left, kPayloadNonceBytes + kTagBytes);
  const std::uint64_t payload = left - kPayloadNonceBytes;
  const std::uint64_t count = (payload + kSealedChunkBytes - 1) / kSealedChunkBytes;
  const std::uint64_t last = payload - (count - 1) * kSealedChunkBytes;
  if (last < kTagBytes || (last == kTagBytes && count > 1))
    fail(Errc::bad_tag, sealed.where(),
         "its last chunk has {} bytes, which none has: it was cut short, or added to", last);
  return {.start = header_bytes + kPayloadNonceBytes, .size = payload - count * kTagBytes};
}

}  // namespace

AgeSource::AgeSource(std::shared_ptr<const ByteSource> sealed, const Chunks& chunks, const Key& key)
    : EncryptedSource(inner_name(sealed->name()), chunks.size, sealed), chunks_(chunks), key_(key) {}

std::shared_ptr<const AgeSource> AgeSource::open(std::shared_ptr<const ByteSource> sealed,
                                                 const GivenKeys& given) {
  const Header header = read_header(*sealed);
  const FileKey file_key = unwrap(header, given, sealed->where());
  require_mac(header, file_key, sealed->where());
  const Chunks chunks = chunks_in(*sealed, header.size);
  const auto nonce = sealed->read(header.size, kPayloadNonceBytes);
  const Key key = hkdf(file_key.bytes(), nonce, "payload");
  const std::shared_ptr<AgeSource> source(new AgeSource(std::move(sealed), chunks, key));
  // Only the end of the whole text is sealed as one: nothing is missing behind it.
  auto last = std::make_shared<std::vector<std::byte>>(chunks.plain_bytes(chunks.last()));
  std::vector<std::byte> buffer(kSealedChunkBytes);
  Aead aead(source->key_);
  source->open_chunk(aead, chunks.last(), buffer, *last);
  source->recent_.put(chunks.last(), std::move(last));
  return source;
}

void AgeSource::open_chunk(Aead& aead, std::uint64_t index, std::span<std::byte> buffer,
                           std::span<std::byte> out) const {
  const auto piece = buffer.first(out.size() + kTagBytes);
  sealed().read(chunks_.offset(index), piece);
  const bool is_last = index == chunks_.last();
  ++opened_;
  if (aead.open(chunk_nonce(index, is_last), piece, out)) return;
  fail(Errc::bad_tag, where(), "chunk {} of {} is not what was encrypted: damaged, changed{}", index,
       chunks_.count(), is_last ? ", or the file was cut short" : " or moved");
}

void AgeSource::read_bytes(std::uint64_t offset, std::span<std::byte> out) const {
  std::unique_ptr<Aead> aead;
  std::vector<std::byte> buffer;
  const auto open = [&](std::uint64_t index, std::span<std::byte> to) {
    if (!aead) {
      aead = std::make_unique<Aead>(key_);
      buffer.resize(kSealedChunkBytes);
    }
    open_chunk(*aead, index, buffer, to);
  };
  while (!out.empty()) {
    const std::uint64_t index = offset / kChunkBytes;
    const auto from = static_cast<std::size_t>(offset % kChunkBytes);
    const std::size_t whole = chunks_.plain_bytes(index);
    const std::size_t count = std::min(whole - from, out.size());
    if (count == whole) {
      open(index, out.first(count));
    } else {
      const auto chunk = recent_.get(index, whole, [&](std::span<std::byte> bytes) { open(index, bytes); });
      std::memcpy(out.data(), chunk->data() + from, count);
    }
    out = out.subspan(count);
    offset += count;
  }
}

std::string inner_name(std::string_view name) {
  constexpr std::string_view kEnding = ".age";
  if (name.ends_with(kEnding)) name.remove_suffix(kEnding.size());
  return std::string(name);
}

bool is_sealed(const ByteSource& source) {
  constexpr std::uint64_t kTelling = 40;
  return is_age(as_text(source.read(0, std::min<std::uint64_t>(source.size(), kTelling))));
}

std::shared_ptr<const ByteSource> unsealed(std::shared_ptr<const ByteSource> source, const GivenKeys& given) {
  if (!is_sealed(*source)) return source;
  return AgeSource::open(std::move(source), given);
}

}  // namespace ballast::seal
