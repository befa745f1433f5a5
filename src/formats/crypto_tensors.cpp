// SPDX-License-Identifier: Apache-2.0
#include "formats/crypto_tensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "base/bytes.h"
#include "base/fail.h"
#include "checkpoint/value_json.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/layout.h"
#include "seal/encrypted_source.h"
#include "seal/jwk.h"
#include "seal/recent_chunks.h"
#include "seal/text.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

using safetensors::Header;
using safetensors::HeaderEntry;
using safetensors::kCryptoKeysKey;
using safetensors::kEncryptionKey;
using seal::Cipher;
using seal::JsonKeys;
using seal::Key;
using seal::kTagBytes;
using seal::Nonce;

constexpr const char* kPolicyKey = "__policy__";
constexpr const char* kSignatureKey = "__signature__";
constexpr std::uint64_t kDefaultChunk = 2U << 20U;

// What the metadata says, with the words for what is wrong with it.
class SaidOfCrypto {
 public:
  SaidOfCrypto(const Metadata& metadata, const char* key, const std::string& file)
      : where_(file + ": metadata " + quoted(key)) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) fail(Errc::bad_json, where_, "is not there, and CryptoTensors writes it");
    object_ = parse_json(found->second, where_);
    if (object_.kind() != Kind::dict) fail(Errc::bad_json, where_, "is no object");
  }

  SaidOfCrypto(Value object, std::string where) : object_(std::move(object)), where_(std::move(where)) {
    if (object_.kind() != Kind::dict) fail(Errc::bad_json, where_, "is no object");
  }

  [[nodiscard]] const Value& object() const noexcept { return object_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  [[nodiscard]] SaidOfCrypto part(std::string_view name) const {
    std::optional<Value> found = object_.find(name);
    if (!found) fail(Errc::bad_json, where_, "has no {}", quoted(name));
    return {*std::move(found), where_ + ": " + quoted(name)};
  }

  [[nodiscard]] std::string text(std::string_view name, bool is_optional = false) const {
    const std::optional<Value> found = object_.find(name);
    if (is_optional && (!found || found->is_none())) return {};
    if (!found || found->kind() != Kind::string) fail(Errc::bad_json, where_, "has no text {}", quoted(name));
    return std::string(found->as_string());
  }

  // `size` 0: any.
  [[nodiscard]] std::vector<std::byte> bytes(std::string_view name, std::size_t size) const {
    auto decoded = seal::from_padded_base64(text(name));
    if (!decoded || (size != 0 && decoded->size() != size))
      fail(Errc::bad_json, where_, "{} is not {} bytes in Base64", quoted(name), size);
    return std::move(*decoded);
  }

 private:
  Value object_;
  std::string where_;
};

Cipher cipher_named(const std::string& name, const std::string& where) {
  if (name == "aes128gcm") return Cipher::aes128_gcm;
  if (name == "aes256gcm") return Cipher::aes256_gcm;
  if (name == "chacha20poly1305") return Cipher::chacha20_poly1305;
  fail(Errc::unsupported, where, "is encrypted with {}, which Ballast does not know", quoted(name));
}

std::vector<safetensors::HeaderLine> lines_of(const Header& header) {
  std::vector<safetensors::HeaderLine> lines;
  lines.reserve(header.tensors.size());
  for (const HeaderEntry& entry : header.tensors)
    lines.push_back({entry.name(), entry.dtype, header.shape(entry), entry.begin, entry.end});
  return lines;
}

// As the reference writes them, without what fills the header up.
std::string header_text(const Header& header, const std::optional<Metadata>& metadata,
                        const std::string& where) {
  std::string text =
      safetensors::head_of(lines_of(header), metadata, where).substr(safetensors::kLengthBytes);
  text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

// Nothing else ties cipher text, names and shapes together: without it tensors could be swapped.
void require_signature(const Header& header, Metadata metadata, const SaidOfCrypto& keys,
                       const JsonKeys& given, const std::string& where) {
  const std::string id = keys.part("sign").text("kid", true);
  const auto found = metadata.find(kSignatureKey);
  const auto signature = found == metadata.end() ? std::nullopt : seal::from_padded_base64(found->second);
  if (!signature) fail(Errc::wrong_signature, where, "is encrypted with CryptoTensors and not signed");
  metadata.erase(kSignatureKey);
  const std::string text = header_text(header, metadata, where);
  bool is_known = false;
  for (const JsonKeys::Verifying& key : given.verifying) {
    if (!id.empty() && !key.id.empty() && key.id != id) continue;
    is_known = true;
    if (seal::ed25519_verify(key.key, text, *signature)) return;
  }
  if (is_known) fail(Errc::wrong_signature, where, "was changed, or is not signed with key {}", quoted(id));
  fail(Errc::cannot_decrypt, where,
       "is signed with key {}, which is not among those given: nothing else ties its tensors to their names "
       "(--identity FILE with the key's \"x\")",
       quoted(id));
}

// Who may open a file is a program there (Rego). The one that allows everything is no loss.
void require_no_policy(const Metadata& metadata, const std::string& where) {
  constexpr std::string_view kAllows = "package model\nallow = true";
  const SaidOfCrypto policy(metadata, kPolicyKey, where);
  for (const char* which : {"local", "remote"})
    if (const std::string text = policy.text(which, true); !text.empty() && text != kAllows)
      fail(Errc::unsupported, where,
           "has a policy of its own ({}), which Ballast does not evaluate; whoever made it decides what it "
           "allows",
           quoted(which));
}

struct SealedTensor {
  std::string_view name;  // in the header
  std::uint64_t begin;    // bytes of the file
  std::uint64_t end;
  std::uint64_t chunk;  // bytes of each but the last
  Key key;
  Nonce nonce{};
  std::vector<std::byte> tags;

  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
};

class CryptoTensors {
 public:
  CryptoTensors(const ByteSource& source, const Header& header, Metadata metadata, const JsonKeys& given)
      : where_(source.where()), keys_(metadata, kCryptoKeysKey, where_) {
    const std::string version = keys_.text("version");
    if (version != "1" && version != "2")
      fail(Errc::unsupported, where_, "is encrypted with CryptoTensors of version {}; 1 and 2 are read",
           quoted(version));
    is_chunked_ = version == "2";
    const SaidOfCrypto enc = keys_.part("enc");
    cipher_ = cipher_named(enc.text("alg"), where_);
    const Key master = master_key(given, enc.text("kid", true));
    require_signature(header, metadata, keys_, given, where_);
    require_no_policy(metadata, where_);
    read_tensors(header, SaidOfCrypto(metadata, kEncryptionKey, where_), seal::Aead(master, cipher_));
  }

  [[nodiscard]] Cipher cipher() const noexcept { return cipher_; }
  [[nodiscard]] std::vector<SealedTensor> take() { return std::move(tensors_); }

 private:
  [[nodiscard]] Key master_key(const JsonKeys& given, const std::string& id) const {
    for (const JsonKeys::Symmetric& key : given.symmetric)
      if (key.size == seal::key_bytes(cipher_) && (id.empty() || key.id.empty() || key.id == id))
        return key.key;
    fail(Errc::cannot_decrypt, where_,
         "is encrypted with CryptoTensors: give its key {} as a JSON Web Key (--identity FILE, "
         "BALLAST_IDENTITY, identities)",
         quoted(id));
  }

  [[nodiscard]] std::uint64_t chunk_bytes() const {
    const std::optional<Value> said = keys_.object().find("chunk_size");
    if (!said || said->is_none()) return kDefaultChunk;
    if (said->kind() != Kind::integer || !said->fits_int() || said->as_int() <= 0)
      fail(Errc::bad_json, keys_.where(), "\"chunk_size\" is no size");
    return static_cast<std::uint64_t>(said->as_int());
  }

  void read_tensors(const Header& header, const SaidOfCrypto& list, seal::Aead opener) {
    const std::uint64_t chunk = is_chunked_ ? chunk_bytes() : std::numeric_limits<std::uint64_t>::max();
    std::size_t found = 0;
    for (const HeaderEntry& entry : header.tensors) {
      const std::optional<Value> said = list.object().find(entry.name());
      if (!said) continue;  // it is plain
      ++found;
      const SaidOfCrypto its(*said, list.where() + ": " + quoted(entry.name()));
      const Key key = unwrapped(its, opener);
      if (entry.begin == entry.end && !is_chunked_) continue;  // nothing was encrypted: no nonce and no tag
      SealedTensor tensor{.name = entry.name(),
                          .begin = header.data_offset + entry.begin,
                          .end = header.data_offset + entry.end,
                          .chunk = chunk,
                          .key = key,
                          .nonce = nonce_in(its, is_chunked_ ? "base_iv" : "iv"),
                          .tags = its.bytes(is_chunked_ ? "tags" : "tag", 0)};
      const std::uint64_t chunks = tensor.size() == 0 ? 1 : (tensor.size() - 1) / chunk + 1;
      if (tensor.tags.size() / kTagBytes != chunks || tensor.tags.size() % kTagBytes != 0)
        fail(Errc::size_mismatch, its.where(), "has {} bytes of tags for {} chunks", tensor.tags.size(),
             chunks);
      tensors_.push_back(std::move(tensor));
    }
    if (found != list.object().size())
      fail(Errc::bad_json, list.where(), "speaks of {} tensors, of which {} are in the file",
           list.object().size(), found);
  }

  [[nodiscard]] static Nonce nonce_in(const SaidOfCrypto& said, const char* name) {
    Nonce nonce{};
    const auto bytes = said.bytes(name, nonce.size());
    std::copy(bytes.begin(), bytes.end(), nonce.begin());
    return nonce;
  }

  [[nodiscard]] Key unwrapped(const SaidOfCrypto& said, seal::Aead& opener) const {
    Key key;
    const auto wrapped = said.bytes("wrapped_key", seal::key_bytes(cipher_));
    if (!opener.open(nonce_in(said, "key_iv"), wrapped, said.bytes("key_tag", kTagBytes),
                     key.bytes().first(wrapped.size())))
      fail(Errc::cannot_decrypt, said.where(), "the key that was given does not open it");
    return key;
  }

  std::string where_;
  SaidOfCrypto keys_;
  bool is_chunked_ = true;
  Cipher cipher_ = Cipher::aes256_gcm;
  std::vector<SealedTensor> tensors_;
};

Nonce nonce_of(const SealedTensor& tensor, std::uint64_t index, const std::string& where) {
  Nonce nonce = tensor.nonce;
  std::uint64_t counter = index;
  for (std::size_t i = 0; i < 4; ++i) counter += std::to_integer<std::uint64_t>(nonce[11 - i]) << 8 * i;
  if (counter > std::numeric_limits<std::uint32_t>::max())
    fail(Errc::size_overflow, where, "tensor {} has more chunks than its nonce can count",
         quoted(tensor.name));
  for (std::size_t i = 0; i < 4; ++i) nonce[11 - i] = static_cast<std::byte>(counter >> 8 * i & 0xFFU);
  return nonce;
}

class DecryptedSource final : public seal::EncryptedSource {
 public:
  DecryptedSource(const std::shared_ptr<const ByteSource>& file, Header header, std::string head,
                  Cipher cipher, std::vector<SealedTensor> tensors)
      : EncryptedSource(file->name(), file->size(), file),
        header_(std::move(header)),
        head_(std::move(head)),
        cipher_(cipher),
        tensors_(std::move(tensors)) {
    for (const SealedTensor& tensor : tensors_)
      if (tensor.size() == 0) open_chunk(tensor, 0, {});
    std::erase_if(tensors_, [](const SealedTensor& tensor) { return tensor.size() == 0; });
  }

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::size_t count = read_some(offset, out);
      out = out.subspan(count);
      offset += count;
    }
  }

  // As much of it as lies in one place.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> out) const {
    const auto upto = [&](std::uint64_t end) {
      return static_cast<std::size_t>(std::min<std::uint64_t>(end - offset, out.size()));
    };
    if (offset < head_.size()) {
      const std::size_t count = upto(head_.size());
      std::memcpy(out.data(), head_.data() + offset, count);
      return count;
    }
    const auto tensor =
        std::upper_bound(tensors_.begin(), tensors_.end(), offset,
                         [](std::uint64_t at, const SealedTensor& one) { return at < one.end; });
    if (tensor == tensors_.end() || offset < tensor->begin) {
      const std::size_t count = upto(tensor == tensors_.end() ? size() : tensor->begin);
      sealed().read(offset, out.first(count));
      return count;
    }
    const std::uint64_t index = (offset - tensor->begin) / tensor->chunk;
    const std::uint64_t begin = tensor->begin + index * tensor->chunk;
    const std::uint64_t whole = std::min(tensor->chunk, tensor->end - begin);
    const std::size_t count = upto(begin + whole);
    if (count == whole) {
      open_chunk(*tensor, index, out.first(count));
      return count;
    }
    const auto chunk = recent_.get(begin, static_cast<std::size_t>(whole),
                                   [&](std::span<std::byte> bytes) { open_chunk(*tensor, index, bytes); });
    std::memcpy(out.data(), chunk->data() + (offset - begin), count);
    return count;
  }

  void open_chunk(const SealedTensor& tensor, std::uint64_t index, std::span<std::byte> out) const {
    sealed().read(tensor.begin + index * tensor.chunk, out);
    const auto tag = std::span(tensor.tags).subspan(static_cast<std::size_t>(index) * kTagBytes, kTagBytes);
    if (seal::Aead(tensor.key, cipher_).open(nonce_of(tensor, index, where()), out, tag, out)) return;
    fail(Errc::bad_tag, where(), "chunk {} of tensor {} is not what was encrypted: damaged or changed", index,
         quoted(tensor.name));
  }

  Header header_;  // whose text has the names
  std::string head_;
  Cipher cipher_;
  std::vector<SealedTensor> tensors_;  // in the order of the file
  mutable seal::RecentChunks recent_{16U << 20U};
};

// The header a plain file would have, filled up to the length of the old one.
std::string plain_head(const Header& header, Metadata metadata, const std::string& where) {
  for (const char* key : {kCryptoKeysKey, kEncryptionKey, kPolicyKey, kSignatureKey}) metadata.erase(key);
  std::string text =
      header_text(header, metadata.empty() ? std::nullopt : std::optional(std::move(metadata)), where);
  const std::uint64_t length = header.data_offset - safetensors::kLengthBytes;
  if (text.size() > length) fail(Errc::unsupported, where, "has a header that grows when it is decrypted");
  text.resize(static_cast<std::size_t>(length), ' ');
  std::string head(safetensors::kLengthBytes, '\0');
  std::memcpy(head.data(), &length, head.size());
  return head += text;
}

}  // namespace

bool may_be_crypto_tensors(const ByteSource& source) {
  constexpr std::uint64_t kPiece = 1U << 20U;
  constexpr std::string_view kMark = "__encryption__";
  if (source.size() < safetensors::kLengthBytes + 1) return false;
  const auto first = source.read(0, safetensors::kLengthBytes + 1);
  const auto length = load_le<std::uint64_t>(first.data());
  if (first.back() != std::byte{'{'} || length > safetensors::kMaxHeaderBytes ||
      length > source.size() - safetensors::kLengthBytes)
    return false;
  for (std::uint64_t at = 0; at < length; at += kPiece) {
    const auto piece = source.read(safetensors::kLengthBytes + at,
                                   std::min<std::uint64_t>(kPiece + kMark.size() - 1, length - at));
    if (memmem(piece.data(), piece.size(), kMark.data(), kMark.size()) != nullptr) return true;
  }
  return false;
}

std::shared_ptr<const ByteSource> without_crypto_tensors(std::shared_ptr<const ByteSource> source,
                                                         const seal::GivenKeys& given) {
  if (!may_be_crypto_tensors(*source)) return source;
  const std::string& where = source->where();
  Header header = safetensors::read_header(*range_of(*source, 0, source->size(), Access::read), where,
                                           safetensors::Mode::strict);
  if (!safetensors::is_crypto_tensors(header)) return source;
  const Metadata metadata = *safetensors::metadata_of(header);
  CryptoTensors opened(*source, header, metadata, seal::json_keys_in(given));
  std::string head = plain_head(header, metadata, where);
  return std::make_shared<const DecryptedSource>(source, std::move(header), std::move(head), opened.cipher(),
                                                 opened.take());
}

}  // namespace ballast
