// SPDX-License-Identifier: Apache-2.0
// Files with secrets in them: identities, private keys, passphrases.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "seal/primitives.h"

namespace ballast::seal {

/// Text that is wiped when it is gone.
class SecretText {
 public:
  explicit SecretText(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
  ~SecretText() { cleanse(bytes_); }

  [[nodiscard]] std::string_view text() const { return as_text(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Errc::invalid_argument where a key itself was given for the path of one: nothing of it is shown.
void require_path(const std::string& path, std::string_view what);

/// Keys are a few lines; whatever is larger is some other file, and refused as no `what`.
[[nodiscard]] SecretText read_secret(const std::string& path, std::string_view what);

/// The first line, without its end; empty is a mistake.
[[nodiscard]] std::span<const std::byte> passphrase_in(const SecretText& file, const std::string& path);

}  // namespace ballast::seal
