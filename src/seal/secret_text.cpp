// SPDX-License-Identifier: Apache-2.0
#include "seal/secret_text.h"

#include <cstdint>

#include "base/fail.h"
#include "base/file.h"

namespace ballast::seal {

void require_path(const std::string& path, std::string_view what) {
  if (path.find("-----BEGIN") != std::string::npos)
    fail(Errc::invalid_argument, std::string(what), "was given as text, and the path of its file is wanted");
}

SecretText read_secret(const std::string& path, std::string_view what) {
  require_path(path, what);
  constexpr std::uint64_t kMost = 64U << 10U;
  const auto file = File::open(path, {.io = Io::read});
  if (file->size() > kMost)
    fail(Errc::invalid_argument, display(path), "{} bytes are too many for {}; is it another file?",
         file->size(), what);
  return SecretText(file->read(0, file->size()));
}

std::span<const std::byte> passphrase_in(const SecretText& file, const std::string& path) {
  std::string_view line = file.text().substr(0, file.text().find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty())
    fail(Errc::invalid_argument, display(path), "its first line, which is the passphrase, is empty");
  return as_bytes(line);
}

}  // namespace ballast::seal
