// SPDX-License-Identifier: Apache-2.0
#include "seal/jwk.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/fail.h"
#include "base/json_scanner.h"
#include "seal/once.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

// A text to be read in place, wiped behind the reader.
class WipedText {
 public:
  explicit WipedText(std::string_view text) : size_(text.size()), text_(text) {
    text_.resize(size_ + JsonScanner::kPadding, '\0');
  }
  WipedText(const WipedText&) = delete;
  WipedText& operator=(const WipedText&) = delete;
  ~WipedText() { cleanse(std::as_writable_bytes(std::span(text_))); }

  [[nodiscard]] std::span<char> text() { return std::span(text_).first(size_); }

 private:
  std::size_t size_;
  std::string text_;
};

// Both alphabets of Base64, with or without '=': RFC 7517 asks for one of them, CryptoTensors writes another.
std::optional<std::vector<std::byte>> key_bytes_in(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string letters(text);
  std::replace(letters.begin(), letters.end(), '-', '+');
  std::replace(letters.begin(), letters.end(), '_', '/');
  auto bytes = from_base64(letters);
  cleanse(std::as_writable_bytes(std::span(letters)));
  return bytes;
}

class KeyReader {
 public:
  KeyReader(JsonScanner& json, JsonKeys& keys) : json_(json), keys_(keys) {}

  void file() {
    if (json_.peek() == JsonScanner::Kind::array)
      list();
    else
      object();
    json_.finish();
  }

 private:
  void list() {
    json_.array([&] { object(); });
  }

  // A key, or a set of them.
  void object() {
    if (json_.peek() != JsonScanner::Kind::object)
      fail(Errc::bad_json, json_.where(), "holds something that is no key (an object)");
    std::string_view kind;
    std::string_view id;
    std::string_view secret;
    std::string_view open;
    bool is_set = false;
    object_once(json_, [&](std::string_view name) {
      if (name == "keys" && json_.peek() == JsonScanner::Kind::array) {
        is_set = true;
        return list();
      }
      if (json_.peek() != JsonScanner::Kind::string) return skip_once(json_);
      const std::string_view text = json_.string();
      if (name == "kty") kind = text;
      if (name == "kid") id = text;
      if (name == "k") secret = text;
      if (name == "x") open = text;
    });
    if (is_set) return;
    const std::string kind_text = lowered(kind);
    if (kind_text.empty()) fail(Errc::bad_json, json_.where(), "holds a key without its kind (\"kty\")");
    if (kind_text == "oct") return add_symmetric(id, secret);
    if (kind_text == "okp" && !open.empty()) return add_verifying(id, open);
  }

  void add_symmetric(std::string_view id, std::string_view text) {
    auto bytes = key_bytes_in(text);
    JsonKeys::Symmetric key{.id = std::string(id), .key = {}, .size = bytes ? bytes->size() : 0};
    if (key.size != 16 && key.size != 32)
      fail(Errc::invalid_argument, json_.where(), "key {} is not 16 or 32 bytes in Base64", quoted(id));
    std::copy(bytes->begin(), bytes->end(), key.key.bytes().begin());
    cleanse(*bytes);
    keys_.symmetric.push_back(std::move(key));
  }

  void add_verifying(std::string_view id, std::string_view text) {
    const auto bytes = key_bytes_in(text);
    JsonKeys::Verifying key{.id = std::string(id)};
    if (!bytes || bytes->size() != key.key.size())
      fail(Errc::invalid_argument, json_.where(), "key {} is not {} bytes in Base64", quoted(id),
           key.key.size());
    std::copy(bytes->begin(), bytes->end(), key.key.begin());
    keys_.verifying.push_back(std::move(key));
  }

  JsonScanner& json_;
  JsonKeys& keys_;
};

}  // namespace

JsonKeys json_keys_in(const GivenKeys& given) {
  JsonKeys keys;
  for_each_identity_file(given, [&](std::string_view text, const std::string& where) {
    if (!is_json_keys(text)) return;
    if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8");
    WipedText copy(text);
    JsonScanner json(copy.text(), where);
    KeyReader(json, keys).file();
  });
  return keys;
}

}  // namespace ballast::seal
