// SPDX-License-Identifier: Apache-2.0
// Files that may be encrypted (docs/seal.md), for all that opens one by its path.
#pragma once

#include <memory>
#include <string>

#include "ballast/io.h"
#include "base/file.h"
#include "seal/keys.h"

namespace ballast {

/// What the options name, or else what set_identities() or the environment does.
[[nodiscard]] seal::GivenKeys keys_of(const OpenOptions& options);

/// Whether one of the identities of the process belongs to one of these recipients.
[[nodiscard]] bool can_open(const std::vector<std::string>& recipients);

/// What the name says of encryption and what is asked for must agree: a secret in the open, and a file that
/// nobody expects to be closed, are both mistakes.
void require_encryption_said(const std::string& path, bool encrypts);

/// `source` itself, or what is in it where it is encrypted (with age, or as CryptoTensors does, or both).
[[nodiscard]] std::shared_ptr<const ByteSource> decrypted(std::shared_ptr<const ByteSource> source,
                                                          const OpenOptions& options);

/// A file, and what formats read of it: itself, or what it holds encrypted.
struct OpenedFile {
  std::shared_ptr<const File> file;
  std::shared_ptr<const ByteSource> content;
};

[[nodiscard]] OpenedFile open_content(const std::string& path, const FileOptions& how,
                                      const OpenOptions& options = {});

}  // namespace ballast
