// SPDX-License-Identifier: Apache-2.0
// Room in a header for later edits: spaces between the metadata and the first tensor, which readers of JSON
// skip. docs/decisions/0025-room-in-headers.md has the reasons.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ballast/byte_source.h"
#include "formats/safetensors/layout.h"

namespace ballast::safetensors {

/// What a disk writes whole or not at all.
inline constexpr std::uint64_t kSectorBytes = 512;

/// The file's first bytes for tensors in this order, in place of `old`, which were so: as long as they were
/// when the metadata fits into its room, else with some room. What the reference writes where the limit of
/// headers allows no room.
[[nodiscard]] std::string head_with_spare(std::string_view old, std::span<const HeaderLine> lines,
                                          const std::optional<Metadata>& metadata, const std::string& where);

/// An open file, or none.
class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags);
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  explicit operator bool() const noexcept { return number_ >= 0; }

  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

/// Keeps other edits of a file away, from before it is read until it is written or replaced: of two, the
/// second reads what the first wrote. Waits a second, then Errc::file_changed.
class EditLock {
 public:
  explicit EditLock(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Not so where there is no such file, or a file system without locks.
  [[nodiscard]] bool is_held() const noexcept { return is_held_; }

  [[nodiscard]] bool is_of(const FileDescriptor& other) const;

 private:
  [[nodiscard]] bool is_named(const struct stat& named) const;

  std::string path_;
  std::optional<FileDescriptor> file_;
  bool is_held_ = false;
};

/// Writes `head` over the first bytes of the locked file, which are `old`, in one step that a power cut
/// leaves done or undone: all that changes lies in one sector. False, and nothing is changed, where it is not
/// so; the file has other names, which are not to change; or it cannot be locked or written. Reads `source`,
/// which is the file, to look at the whole before it is written.
[[nodiscard]] bool write_in_place(const EditLock& lock, const ByteSource& source, std::string_view old,
                                  std::string_view head, bool durable);

}  // namespace ballast::safetensors
