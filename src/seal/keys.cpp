// SPDX-License-Identifier: Apache-2.0
#include "seal/keys.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/ascii.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "seal/secret_text.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

constexpr std::string_view kX25519 = "X25519";
constexpr std::string_view kScrypt = "scrypt";
constexpr std::string_view kX25519Info = "age-encryption.org/v1/X25519";
constexpr std::string_view kScryptLabel = "age-encryption.org/v1/scrypt";
constexpr std::string_view kIdentityStart = "AGE-SECRET-KEY-1";
constexpr std::size_t kSaltBytes = 16;
constexpr std::size_t kWrappedBytes = 16 + kTagBytes;
constexpr unsigned kLogN = 18;  // what age itself takes: a second, 256 MiB
constexpr Nonce kZeroNonce{};

Key x25519_wrapping_key(const Key& shared, const Point& ephemeral, const Point& recipient) {
  std::array<std::byte, 64> salt{};
  std::copy(ephemeral.begin(), ephemeral.end(), salt.begin());
  std::copy(recipient.begin(), recipient.end(), salt.begin() + 32);
  return hkdf(shared.bytes(), salt, kX25519Info);
}

// One at a time: it may take a GiB, and shards are opened side by side.
Key scrypt_wrapping_key(std::span<const std::byte> passphrase, std::span<const std::byte> salt,
                        unsigned log_n) {
  static std::mutex one;
  const std::lock_guard lock(one);
  std::vector<std::byte> labelled;
  const auto label = as_bytes(kScryptLabel);
  labelled.insert(labelled.end(), label.begin(), label.end());
  labelled.insert(labelled.end(), salt.begin(), salt.end());
  return scrypt(passphrase, labelled, log_n);
}

// Bytes of an argument in Base64, of one length and no other.
std::vector<std::byte> argument_bytes(const Stanza& stanza, std::size_t index, std::size_t size,
                                      std::size_t arguments, const std::string& where) {
  const std::string& kind = stanza.arguments[0];
  if (stanza.arguments.size() != arguments)
    fail(Errc::bad_age, where, "a stanza {} with {} arguments, which has {}", quoted(kind),
         stanza.arguments.size() - 1, arguments - 1);
  auto bytes = from_base64(stanza.arguments[index]);
  if (!bytes || bytes->size() != size)
    fail(Errc::bad_age, where, "argument {} of a stanza {} is not {} bytes in canonical Base64", index,
         quoted(kind), size);
  if (stanza.body.size() != kWrappedBytes)
    fail(Errc::bad_age, where, "a stanza {} holds {} bytes, not {}", quoted(kind), stanza.body.size(),
         kWrappedBytes);
  return std::move(*bytes);
}

unsigned log_n_of(const Stanza& stanza, const std::string& where) {
  const std::string& text = stanza.arguments[2];
  const bool is_number = all_digits(text) && !text.starts_with('0');
  if (!is_number) fail(Errc::bad_age, where, "scrypt's work factor {} is no number", quoted(text));
  const unsigned log_n = text.size() > 2 ? kMaxLogN + 1 : static_cast<unsigned>(std::stoul(text));
  if (log_n > kMaxLogN)
    fail(
        Errc::expansion_limit, where,
        "its passphrase asks for 2^{} rounds of scrypt, {} at most are done: more is an attack on the reader",
        text, kMaxLogN);
  return log_n;
}

struct X25519Stanza {
  Point ephemeral{};
  const Stanza* stanza = nullptr;
};

// All stanzas of the kinds that are known, judged whether a key for them was given or not.
struct Judged {
  std::vector<X25519Stanza> x25519;
  const Stanza* scrypt = nullptr;
  std::vector<std::byte> salt;
  unsigned log_n = 0;
};

Judged judge(const Header& header, const std::string& where) {
  Judged judged;
  for (const Stanza& stanza : header.stanzas) {
    if (stanza.arguments[0] == kX25519) {
      X25519Stanza one{.stanza = &stanza};
      const auto bytes = argument_bytes(stanza, 1, one.ephemeral.size(), 2, where);
      std::copy(bytes.begin(), bytes.end(), one.ephemeral.begin());
      judged.x25519.push_back(one);
    } else if (stanza.arguments[0] == kScrypt) {
      if (header.stanzas.size() != 1)
        fail(Errc::bad_age, where,
             "a passphrase must be the only way to open a file, and there are {} stanzas",
             header.stanzas.size());
      judged.scrypt = &stanza;
      judged.salt = argument_bytes(stanza, 1, kSaltBytes, 3, where);
      judged.log_n = log_n_of(stanza, where);
    }
  }
  return judged;
}

std::optional<FileKey> open_stanza(const Stanza& stanza, const Key& key) {
  FileKey file_key;
  if (!Aead(key).open(kZeroNonce, stanza.body, file_key.bytes())) return std::nullopt;
  return file_key;
}

std::optional<FileKey> open_x25519(const X25519Stanza& one, const Key& secret, const Point& recipient,
                                   const std::string& where) {
  Key shared;
  if (!x25519(secret, one.ephemeral, shared))
    fail(Errc::bad_age, where,
         "a stanza \"X25519\" holds a point of low order, which no writer makes by chance");
  return open_stanza(*one.stanza, x25519_wrapping_key(shared, one.ephemeral, recipient));
}

// Wherever it stands and however it is written: a space before it, or a whole file of keys, is a slip of the
// hand, and nothing of it may be shown.
bool holds_identity(std::string_view text) {
  constexpr std::size_t kEnough = 20;  // letters of a key: no path has them
  const std::string lower = lowered(text);
  const std::string start = lowered(kIdentityStart);
  for (std::size_t at = lower.find(start); at != std::string::npos; at = lower.find(start, at + 1)) {
    const std::string_view rest = std::string_view(lower).substr(at + start.size(), kEnough);
    if (rest.size() == kEnough && std::all_of(rest.begin(), rest.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        }))
      return true;
  }
  return false;
}

bool is_text(const std::string& identity) {
  return identity.starts_with(kIdentityStart) || identity.starts_with('{') ||
         identity.find('\n') != std::string::npos || holds_identity(identity);
}

std::vector<Key> identities_in(const GivenKeys& given) {
  std::vector<Key> keys;
  for_each_identity_file(given, [&](std::string_view text, const std::string& where) {
    if (is_json_keys(text)) return;
    const std::vector<Key> some = parse_identities(text, where);
    keys.insert(keys.end(), some.begin(), some.end());
  });
  return keys;
}

std::string kinds_in(const Header& header) {
  std::vector<std::string> kinds;
  for (const Stanza& stanza : header.stanzas) {
    const std::string kind = display(stanza.arguments[0], 32);
    if (kinds.size() < 4 && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

}  // namespace

void for_each_identity_file(const GivenKeys& given,
                            const std::function<void(std::string_view, const std::string&)>& use) {
  for (const std::string& identity : given.identities) {
    if (is_text(identity))
      use(identity, "identity");
    else
      use(read_secret(identity, "an identity file").text(), display(identity));
  }
}

bool is_json_keys(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

FileKey unwrap(const Header& header, const GivenKeys& given, const std::string& where) {
  const Judged judged = judge(header, where);
  const std::vector<Key> identities = identities_in(given);
  for (const Key& secret : identities) {
    const Point recipient = x25519_public(secret);
    for (const X25519Stanza& one : judged.x25519) {
      if (auto key = open_x25519(one, secret, recipient, where)) return *key;
    }
  }
  if (judged.scrypt != nullptr && !given.passphrase_file.empty()) {
    const SecretText file = read_secret(given.passphrase_file, "a passphrase");
    const Key key =
        scrypt_wrapping_key(passphrase_in(file, given.passphrase_file), judged.salt, judged.log_n);
    if (auto file_key = open_stanza(*judged.scrypt, key)) return *file_key;
    fail(Errc::cannot_decrypt, where, "the passphrase in {} is not the one it was encrypted with",
         quoted(given.passphrase_file));
  }
  const std::string_view needed = judged.scrypt != nullptr
                                      ? "a passphrase (--passphrase-file FILE, passphrase_file)"
                                      : "an identity (--identity FILE, BALLAST_IDENTITY, identities)";
  if (judged.scrypt == nullptr && judged.x25519.empty())
    fail(Errc::unsupported, where, "is encrypted with age for recipients of kinds Ballast does not read: {}",
         kinds_in(header));
  if (judged.scrypt != nullptr || identities.empty())
    fail(Errc::cannot_decrypt, where, "is encrypted with age: give {} to open it", needed);
  fail(Errc::cannot_decrypt, where,
       "is encrypted with age for {} recipient{}, and none is of the {} identit{} given",
       header.stanzas.size(), header.stanzas.size() == 1 ? "" : "s", identities.size(),
       identities.size() == 1 ? "y" : "ies");
}

std::vector<std::string> recipients_of(const GivenKeys& given) {
  std::vector<std::string> recipients;
  for (const Key& secret : identities_in(given)) recipients.push_back(recipient_text(x25519_public(secret)));
  return recipients;
}

namespace {

Stanza wrap_for(const FileKey& key, const std::string& recipient) {
  const auto bytes = recipient.starts_with("age1") ? from_bech32("age", recipient) : std::nullopt;
  Point point{};
  if (recipient.starts_with("AGE-SECRET-KEY-") || holds_identity(recipient))  // and is not shown
    fail(Errc::invalid_argument, "recipient",
         "is an identity, which is secret; its recipient (age1…) is wanted");
  if (!bytes || bytes->size() != point.size())
    fail(Errc::invalid_argument, "recipient", "{} is no recipient of age (age1…), or was not copied whole",
         quoted(recipient));
  std::copy(bytes->begin(), bytes->end(), point.begin());
  Key ephemeral;
  fill_random(ephemeral.bytes());
  Key shared;
  if (!x25519(ephemeral, point, shared))
    fail(Errc::invalid_argument, "recipient", "{} is a point of low order: nobody has its secret key",
         quoted(recipient));
  const Point mine = x25519_public(ephemeral);
  Stanza stanza{.arguments = {std::string(kX25519), base64(mine)},
                .body = std::vector<std::byte>(kWrappedBytes)};
  Aead(x25519_wrapping_key(shared, mine, point)).seal(kZeroNonce, key.bytes(), stanza.body);
  return stanza;
}

Stanza wrap_with_passphrase(const FileKey& key, const std::string& path) {
  const SecretText file = read_secret(path, "a passphrase");
  std::array<std::byte, kSaltBytes> salt{};
  fill_random(salt);
  Stanza stanza{.arguments = {std::string(kScrypt), base64(salt), std::to_string(kLogN)},
                .body = std::vector<std::byte>(kWrappedBytes)};
  Aead(scrypt_wrapping_key(passphrase_in(file, path), salt, kLogN))
      .seal(kZeroNonce, key.bytes(), stanza.body);
  return stanza;
}

}  // namespace

std::vector<Stanza> wrap(const FileKey& key, const std::vector<std::string>& recipients,
                         const std::string& passphrase_file) {
  if (recipients.empty() == passphrase_file.empty())
    fail(Errc::invalid_argument, "recipients",
         "a file is encrypted for recipients or with a passphrase: give one of them");
  if (recipients.size() > kMaxStanzas)
    fail(Errc::too_many, "recipients", "{} recipients, {} at most", recipients.size(), kMaxStanzas);
  std::vector<Stanza> stanzas;
  for (const std::string& recipient : recipients) stanzas.push_back(wrap_for(key, recipient));
  if (!passphrase_file.empty()) stanzas.push_back(wrap_with_passphrase(key, passphrase_file));
  return stanzas;
}

std::vector<Key> parse_identities(std::string_view text, const std::string& where) {
  std::vector<Key> keys;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    // What the line says is never shown: it may be a secret.
    auto bytes = line.starts_with(kIdentityStart) ? from_bech32("age-secret-key-", line) : std::nullopt;
    if (!bytes || bytes->size() != 32)
      fail(Errc::invalid_argument, where,
           "line {} is no identity of age (AGE-SECRET-KEY-1…), or was not copied whole", number);
    Key key;
    std::copy(bytes->begin(), bytes->end(), key.bytes().begin());
    cleanse(*bytes);
    keys.push_back(key);
  }
  if (keys.empty()) fail(Errc::invalid_argument, where, "holds no identity of age (AGE-SECRET-KEY-1…)");
  return keys;
}

std::string identity_text(const Key& secret) {
  std::string text = bech32("age-secret-key-", secret.bytes());
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string recipient_text(const Point& point) {
  return bech32("age", point);
}

}  // namespace ballast::seal
