// SPDX-License-Identifier: Apache-2.0
// Safetensors files whose tensors are encrypted in their places (CryptoTensors, docs/seal.md#cryptotensors).
// Anybody who does not know of it reads cipher text as weights, so that nobody here may.
#pragma once

#include <memory>

#include "ballast/byte_source.h"
#include "seal/keys.h"

namespace ballast {

/// Whether it could be one: cheap, for every file that is opened, and settled by the header itself.
[[nodiscard]] bool may_be_crypto_tensors(const ByteSource& source);

/// The plain Safetensors file that `source` stands for: of the same size, its header without what tells of
/// the encryption, its tensors decrypted where they are read. `source` itself where it is no such file. The
/// signature is checked first. Errc::cannot_decrypt, wrong_signature, unsupported (another policy than none),
/// bad_json; Errc::bad_tag, when they are read, for bytes that were changed.
[[nodiscard]] std::shared_ptr<const ByteSource> without_crypto_tensors(
    std::shared_ptr<const ByteSource> source, const seal::GivenKeys& given);

}  // namespace ballast
