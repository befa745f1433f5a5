// SPDX-License-Identifier: Apache-2.0
// A folder for results that nobody keeps.
#pragma once

#include <string>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Below the system's folder for temporary files, for its owner alone; gone at the end with the files in it,
/// also after a signal (discard_unfinished_files()). What processes that were killed left is removed when the
/// next one is made.
class ScratchFolder {
 public:
  /// `purpose` is a word in its name. Errc::io_error, permission_denied, no_space.
  explicit ScratchFolder(const std::string& purpose);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  /// With a slash at the end.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int entry_ = -1;  // in the list of unfinished files
};

}  // namespace ballast

#pragma GCC visibility pop
