// SPDX-License-Identifier: Apache-2.0
// The text that is signed for a model: an in-toto statement with the name and the SHA-256 of every file.
#pragma once

#include <string>
#include <vector>

#include "base/digest.h"

namespace ballast::seal {

struct SignedFile {
  std::string name;  // below the model, parts joined by '/'; "." where the model is one file
  Sha256::Digest digest;
  friend bool operator==(const SignedFile&, const SignedFile&) = default;
};

struct Statement {
  std::string model;              // what it is called; empty before 0.3
  std::vector<SignedFile> files;  // in the order of before_path()
  bool allow_symlinks = false;
  std::vector<std::string> ignored;  // as written
  friend bool operator==(const Statement&, const Statement&) = default;
};

/// Paths by their parts, as Python sorts them: "a/b" before "a-b".
[[nodiscard]] bool before_path(std::string_view a, std::string_view b) noexcept;

/// A path without "." and doubled '/'; "." when nothing is left. Empty for one that leaves the model (a ".."
/// or a '/' in front), or holds a zero byte.
[[nodiscard]] std::string plain_path(std::string_view path);

/// Of signatures that `model_signing` 0.2 to 1.1 made, and of those the specification describes.
/// Errc::bad_bundle for what it would not take, Errc::unsupported for files signed in parts or by other
/// hashes.
[[nodiscard]] Statement read_statement(std::string text, const std::string& where);

[[nodiscard]] std::string statement_text(const Statement& statement);

}  // namespace ballast::seal
