// SPDX-License-Identifier: Apache-2.0
#include "seal/primitives.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/fail.h"

namespace ballast::seal {
namespace {

const unsigned char* uchars(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* out_uchars(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

void require(bool worked, const char* what) {
  if (worked) return;
  bool had_memory = true;
  // All of this thread's, which is not ours alone.
  while (const unsigned long error = ERR_get_error())
    had_memory = had_memory && ERR_GET_REASON(error) != ERR_R_MALLOC_FAILURE;
  if (!had_memory) throw std::bad_alloc();
  fail(Errc::unsupported, what, "OpenSSL refuses to compute it (a provider that leaves it out?)");
}

// OpenSSL takes pointers to what it does not change.
OSSL_PARAM bytes_parameter(const char* name, std::span<const std::byte> bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Key derive(const char* kind, const OSSL_PARAM* parameters) {
  const std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> kdf(EVP_KDF_fetch(nullptr, kind, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(
      kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr, EVP_KDF_CTX_free);
  Key key;
  require(
      context && EVP_KDF_derive(context.get(), out_uchars(key.bytes()), key.bytes().size(), parameters) == 1,
      kind);
  return key;
}

using PrivateKey = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;

PrivateKey private_key(const Key& secret) {
  return {
      EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, uchars(secret.bytes()), secret.bytes().size()),
      EVP_PKEY_free};
}

}  // namespace

void cleanse(std::span<std::byte> bytes) noexcept {
  OPENSSL_cleanse(bytes.data(), bytes.size());
}

Key hkdf(std::span<const std::byte> secret, std::span<const std::byte> salt, std::string_view info) {
  constexpr std::array<std::byte, 32> kNoSalt{};
  std::string digest = "SHA256";
  const std::array parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      bytes_parameter(OSSL_KDF_PARAM_KEY, secret),
      bytes_parameter(OSSL_KDF_PARAM_SALT, salt.empty() ? std::span<const std::byte>(kNoSalt) : salt),
      bytes_parameter(OSSL_KDF_PARAM_INFO, std::as_bytes(std::span(info))),
      OSSL_PARAM_construct_end(),
  };
  return derive("HKDF", parameters.data());
}

Key scrypt(std::span<const std::byte> passphrase, std::span<const std::byte> salt, unsigned log_n) {
  std::uint64_t n = std::uint64_t{1} << log_n;
  std::uint32_t r = 8;
  std::uint32_t p = 1;
  // 128 r N bytes and a little; OpenSSL's own limit is 32 MiB.
  std::uint64_t most = (std::uint64_t{1} << 10U) * n + (std::uint64_t{1} << 20U);
  const std::array parameters = {
      bytes_parameter(OSSL_KDF_PARAM_PASSWORD, passphrase),
      bytes_parameter(OSSL_KDF_PARAM_SALT, salt),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
      OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &most),
      OSSL_PARAM_construct_end(),
  };
  return derive("SCRYPT", parameters.data());
}

std::array<std::byte, 32> hmac_sha256(const Key& key, std::string_view text) {
  std::array<std::byte, 32> mac{};
  unsigned length = 0;
  require(HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()),
               uchars(std::as_bytes(std::span(text))), text.size(), out_uchars(mac), &length) != nullptr &&
              length == mac.size(),
          "HMAC-SHA-256");
  return mac;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Point x25519_public(const Key& secret) {
  const PrivateKey key = private_key(secret);
  Point point{};
  std::size_t size = point.size();
  require(key && EVP_PKEY_get_raw_public_key(key.get(), out_uchars(point), &size) == 1, "X25519");
  return point;
}

bool x25519(const Key& secret, const Point& point, Key& shared) {
  const PrivateKey mine = private_key(secret);
  const PrivateKey theirs(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, uchars(point), point.size()),
                          EVP_PKEY_free);
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      mine ? EVP_PKEY_CTX_new(mine.get(), nullptr) : nullptr, EVP_PKEY_CTX_free);
  require(context && theirs && EVP_PKEY_derive_init(context.get()) == 1 &&
              EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1,
          "X25519");
  std::size_t size = shared.bytes().size();
  const bool derived = EVP_PKEY_derive(context.get(), out_uchars(shared.bytes()), &size) == 1;
  if (!derived)
    ERR_clear_error();  // OpenSSL refuses such points itself; a build that does not is asked again
  const auto bytes = shared.bytes();
  return derived && std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
}

bool ed25519_verify(const Point& key, std::string_view text, std::span<const std::byte> signature) {
  const PrivateKey theirs(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, uchars(key), key.size()),
                          EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  require(
      theirs && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, theirs.get()) == 1,
      "Ed25519");
  const bool is_right = EVP_DigestVerify(context.get(), uchars(signature), signature.size(),
                                         uchars(std::as_bytes(std::span(text))), text.size()) == 1;
  if (!is_right) ERR_clear_error();
  return is_right;
}

void fill_random(std::span<std::byte> bytes) {
  require(RAND_priv_bytes(out_uchars(bytes), static_cast<int>(bytes.size())) == 1, "random bytes");
}

namespace {

constexpr const char* kCipher = "an authenticated cipher";

const EVP_CIPHER* evp_of(Cipher cipher) {
  switch (cipher) {
    case Cipher::aes128_gcm:
      return EVP_aes_128_gcm();
    case Cipher::aes256_gcm:
      return EVP_aes_256_gcm();
    case Cipher::chacha20_poly1305:
      break;
  }
  return EVP_chacha20_poly1305();
}

// OpenSSL counts bytes in int.
bool update(EVP_CIPHER_CTX* context,
            int (*step)(EVP_CIPHER_CTX*, unsigned char*, int*, const unsigned char*, int),
            std::span<const std::byte> in, std::span<std::byte> out) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;
  while (!in.empty()) {
    const std::size_t count = std::min(in.size(), kMost);
    int length = 0;
    if (step(context, out_uchars(out), &length, uchars(in), static_cast<int>(count)) != 1 ||
        static_cast<std::size_t>(length) != count)
      return false;
    in = in.subspan(count);
    out = out.subspan(count);
  }
  return true;
}

}  // namespace

std::size_t key_bytes(Cipher cipher) noexcept {
  return cipher == Cipher::aes128_gcm ? 16 : 32;
}

struct Aead::State {
  using Context = std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)>;

  State(const Key& its_key, Cipher its_cipher) : key(its_key), cipher(its_cipher) {}

  // Made when it is needed: hardly anybody goes both ways.
  EVP_CIPHER_CTX* context(Context& one, int encrypts) const {
    if (one) return one.get();
    one.reset(EVP_CIPHER_CTX_new());
    require(one && EVP_CipherInit_ex(one.get(), evp_of(cipher), nullptr, uchars(key.bytes()), nullptr,
                                     encrypts) == 1,
            kCipher);
    return one.get();
  }

  Key key;
  Cipher cipher;
  Context opening{nullptr, EVP_CIPHER_CTX_free};
  Context sealing{nullptr, EVP_CIPHER_CTX_free};
};

Aead::Aead(const Key& key, Cipher cipher) : state_(std::make_unique<State>(key, cipher)) {}

Aead::~Aead() = default;

bool Aead::open(const Nonce& nonce, std::span<const std::byte> sealed, std::span<std::byte> out) {
  return open(nonce, sealed.first(out.size()), sealed.last(kTagBytes), out);
}

bool Aead::open(const Nonce& nonce, std::span<const std::byte> sealed, std::span<const std::byte> tag,
                std::span<std::byte> out) {
  EVP_CIPHER_CTX* context = state_->context(state_->opening, 0);
  std::array<std::byte, kTagBytes> right{};
  std::copy_n(tag.begin(), kTagBytes, right.begin());
  std::array<unsigned char, 16> nothing{};  // what is left to write when all is read
  int last = 0;
  require(EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, uchars(nonce)) == 1 &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, right.data()) == 1,
          kCipher);
  if (update(context, EVP_DecryptUpdate, sealed, out) &&
      EVP_DecryptFinal_ex(context, nothing.data(), &last) == 1)
    return true;
  ERR_clear_error();
  cleanse(out);
  return false;
}

void Aead::seal(const Nonce& nonce, std::span<const std::byte> plain, std::span<std::byte> out) {
  EVP_CIPHER_CTX* context = state_->context(state_->sealing, 1);
  std::array<unsigned char, 16> nothing{};
  int last = 0;
  require(EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, uchars(nonce)) == 1 &&
              update(context, EVP_EncryptUpdate, plain, out) &&
              EVP_EncryptFinal_ex(context, nothing.data(), &last) == 1 &&
              EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, out.data() + plain.size()) == 1,
          kCipher);
}

}  // namespace ballast::seal
