// SPDX-License-Identifier: Apache-2.0
// Whole files at once.
#include "ballast/detail/function.h"
#include "base/atomic_file.h"

namespace ballast {

void save_text(std::string_view text, const std::string& path, bool overwrite) {
  AtomicFile file(path, overwrite);
  file.append(text);
  file.commit();
}

void save_pieces(const std::string& path, bool overwrite,
                 const Function<void(const Function<void(std::span<const std::byte>)>&)>& write) {
  AtomicFile file(path, overwrite);
  write([&](std::span<const std::byte> bytes) { file.append(bytes); });
  file.commit();
}

void save_secret(std::string_view text, const std::string& path, bool overwrite) {
  AtomicFile file(path, overwrite, FileMode::secret);
  file.append(text);
  file.commit();
}

}  // namespace ballast
