// SPDX-License-Identifier: Apache-2.0
#include "base/scratch_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/temporary_name.h"
#include "base/unfinished.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

// The folder may be everybody's, and so are the names in it.
void sweep(const fs::path& folder, const std::string& purpose) noexcept {
  try {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      struct stat status {};

      const bool is_ours =
          lstat(entry.path().c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
      if (is_ours && is_left_behind(entry.path().filename().string(), purpose))
        fs::remove_all(entry.path(), ignored);
    }
  } catch (const std::exception&) {  // a courtesy
  }
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& purpose) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) fail(Errc::io_error, "TMPDIR", "is no folder for temporary files: {}", error.message());
  sweep(folder, purpose);
  path_ = temporary_name((folder / purpose).string());
  entry_ = list_unfinished(path_, Unfinished::scratch);
  if (mkdir(path_.c_str(), 0700) != 0) {
    const int reason = errno;
    unlist_unfinished(entry_);
    fail_errno(reason, display(path_), "a folder for the result cannot be made");
  }
  path_ += '/';
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_.substr(0, path_.size() - 1), ignored);
  unlist_unfinished(entry_);
}

}  // namespace ballast
