// SPDX-License-Identifier: Apache-2.0
// A bundle: the file a signature of OpenSSF Model Signing lies in. It is JSON with the signed text (a
// statement, statement.h), the signature, and what is known of the key. This is Sigstore's form 0.3, as far
// as keys and certificates of one's own go.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "seal/signing.h"

namespace ballast::seal {

struct Bundle {
  std::string hint;               // of the public key: hexadecimal SHA-256; empty in bundles before 1.1
  std::vector<Der> certificates;  // the signer's first; empty where a key signed
  std::string payload;
  Der signature;
  std::vector<std::string> notes;  // what is in it and does not count
};

/// Larger ones are refused: a million files fit.
inline constexpr std::size_t kMaxBundle = std::size_t{256} << 20U;

/// Errc::bad_bundle for what `model_signing` would not take, and where keys repeat; Errc::unsupported for
/// signatures of other kinds, which it names.
[[nodiscard]] Bundle read_bundle(std::string text, const std::string& where);

[[nodiscard]] std::string bundle_text(const Bundle& bundle);

/// What is signed for a payload: its DSSE encoding.
[[nodiscard]] std::string encoded(std::string_view payload);

/// What `model_signing` 0.2 signed instead: the payload as Python prints bytes.
[[nodiscard]] std::string encoded_as_0_2(std::string_view payload);

}  // namespace ballast::seal
