// SPDX-License-Identifier: Apache-2.0
// ECDSA on the curves P-256, P-384 and P-521, and X.509, as OpenSSL computes them: nothing here is
// cryptography of our own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::seal {

using Der = std::vector<std::byte>;  // ASN.1 as it is signed

/// Which hash a text is signed by.
enum class SignedBy { curve, sha256 };  // the curve's own: SHA-256, SHA-384, SHA-512

/// A key of one of the three curves; Errc::invalid_argument for all others.
class SigningKey {
 public:
  /// `passphrase` opens an encrypted one.
  static SigningKey from_private_pem(std::string_view pem, std::string_view passphrase,
                                     const std::string& where);
  static SigningKey from_public_pem(std::string_view pem, const std::string& where);

  /// Of a private key alone. DER.
  [[nodiscard]] Der sign(std::string_view text) const;
  [[nodiscard]] bool verify(std::string_view text, const Der& signature, SignedBy by) const;
  /// Hexadecimal SHA-256 of the public key as PEM, whatever form it was read in.
  [[nodiscard]] std::string hint() const;

  struct State;
  explicit SigningKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  [[nodiscard]] const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

struct Signer {
  SigningKey key;
  std::string name;  // the subject of the certificate
};

/// All certificates in a PEM text; Errc::invalid_argument when there is none, or one is damaged.
[[nodiscard]] std::vector<Der> certificates_in(std::string_view pem, const std::string& where);

/// Whether a certificate is for this key; its name.
[[nodiscard]] std::string name_for_key(const Der& certificate, const SigningKey& key,
                                       const std::string& where);

/// The first of `chain`, when it leads to a self-signed one of `trusted` by the others of both, at the time
/// it began to be valid, and may sign. Errc::wrong_signature otherwise.
[[nodiscard]] Signer trusted_signer(const std::vector<Der>& chain, const std::vector<Der>& trusted,
                                    const std::string& where);

/// Mail addresses and URIs a certificate is for; empty when it cannot be read or has none.
[[nodiscard]] std::string name_in_certificate(const Der& certificate);

}  // namespace ballast::seal
