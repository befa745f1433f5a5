// SPDX-License-Identifier: Apache-2.0
#include "containers/confine.h"

#include <algorithm>
#include <filesystem>

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast::containers {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [rest, ignored] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

// The cache's repository folder, when `folder` is <repository>/snapshots/<revision>[/…].
fs::path hub_blobs(const fs::path& folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    if (at.parent_path().filename() == "snapshots") return at.parent_path().parent_path() / "blobs";
  }
  return {};
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string confined(const std::string& folder, const std::string& file) {
  std::error_code error;
  const fs::path home = fs::canonical(folder, error);
  if (error) fail(Errc::io_error, display(folder), "cannot be looked at: {}", error.message());
  const fs::path real = fs::canonical(fs::path(folder) / file, error);
  if (error) return {};
  const fs::path blobs = hub_blobs(home);
  if (is_below(real, home) || (!blobs.empty() && real.parent_path() == blobs)) return real.string();
  fail(Errc::path_escape, display((fs::path(folder) / file).string()),
       "is a link to {}, outside the folder of the file that names it", ballast::quoted(real.string()));
}

}  // namespace ballast::containers
