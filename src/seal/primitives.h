// SPDX-License-Identifier: Apache-2.0
// What age is made of, as OpenSSL computes it: nothing here is cryptography of our own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace ballast::seal {

/// Overwrites secrets in a way no optimiser leaves out.
void cleanse(std::span<std::byte> bytes) noexcept;

/// A key that does not outlive its owner in memory.
template <std::size_t Size>
class Secret {
 public:
  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { cleanse(bytes_); }

  [[nodiscard]] std::span<std::byte, Size> bytes() noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte, Size> bytes() const noexcept { return bytes_; }

 private:
  std::array<std::byte, Size> bytes_{};
};

using Key = Secret<32>;      // of ChaCha20-Poly1305, of HMAC, of X25519
using FileKey = Secret<16>;  // from which all keys of one file come
using Point = std::array<std::byte, 32>;

/// HKDF with SHA-256. An empty salt is 32 zeros, as RFC 5869 says.
[[nodiscard]] Key hkdf(std::span<const std::byte> secret, std::span<const std::byte> salt,
                       std::string_view info);

/// r 8, p 1, N = 2^log_n: takes 2^log_n KiB of memory.
[[nodiscard]] Key scrypt(std::span<const std::byte> passphrase, std::span<const std::byte> salt,
                         unsigned log_n);

[[nodiscard]] std::array<std::byte, 32> hmac_sha256(const Key& key, std::string_view text);

[[nodiscard]] bool equal_in_constant_time(std::span<const std::byte> a,
                                          std::span<const std::byte> b) noexcept;

[[nodiscard]] Point x25519_public(const Key& secret);

/// False for points of low order, whose shared secret is all zeros.
[[nodiscard]] bool x25519(const Key& secret, const Point& point, Key& shared);

/// Whether the key's owner signed the text. False too for a signature of another size.
[[nodiscard]] bool ed25519_verify(const Point& key, std::string_view text,
                                  std::span<const std::byte> signature);

/// From the system's generator; for keys.
void fill_random(std::span<std::byte> bytes);

inline constexpr std::size_t kTagBytes = 16;
using Nonce = std::array<std::byte, 12>;

enum class Cipher : std::uint8_t { chacha20_poly1305, aes128_gcm, aes256_gcm };

[[nodiscard]] std::size_t key_bytes(Cipher cipher) noexcept;

/// One key, without additional data. For one thread.
class Aead {
 public:
  explicit Aead(const Key& key, Cipher cipher = Cipher::chacha20_poly1305);  ///< the first key_bytes() of it
  ~Aead();
  Aead(const Aead&) = delete;
  Aead& operator=(const Aead&) = delete;

  /// `sealed` is `out` and a tag behind it. False, and zeros in `out`, when the tag is wrong.
  [[nodiscard]] bool open(const Nonce& nonce, std::span<const std::byte> sealed, std::span<std::byte> out);
  /// The same with the tag elsewhere.
  [[nodiscard]] bool open(const Nonce& nonce, std::span<const std::byte> sealed,
                          std::span<const std::byte> tag, std::span<std::byte> out);
  /// `out` has room for the tag.
  void seal(const Nonce& nonce, std::span<const std::byte> plain, std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ballast::seal
