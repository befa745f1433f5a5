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

/// A file, and what formats read of it: itself, or what it holds encrypted.
struct OpenedFile {
  std::shared_ptr<const File> file;
  std::shared_ptr<const ByteSource> content;
};

[[nodiscard]] OpenedFile open_content(const std::string& path, const FileOptions& how,
                                      const OpenOptions& options = {});

}  // namespace ballast
