// SPDX-License-Identifier: Apache-2.0
// Files, read: a regular file held open, its size known once, read by position or mapped. The size is checked
// again by whoever depends on it (check_unchanged()); a file that shrinks gives an Error and not zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ballast/io_mode.h"

namespace ballast {

class DirectFile;

/// What map() gives: the file itself, or memory that may be written and then belongs to this process alone.
enum class Sharing : std::uint8_t { read_only, copy_on_write };

struct FileOptions {
  Sharing sharing = Sharing::read_only;
  Io io = Io::automatic;
  /// False for an absolute path whose links were resolved and judged before (formats/confine.h): a link
  /// anywhere in it has been put there since, and is Errc::path_escape.
  bool follow_links = true;
};

class File : public std::enable_shared_from_this<File> {
 public:
  /// Regular files only: a folder, pipe or device is Errc::not_regular_file, and opening one never blocks.
  static std::shared_ptr<const File> open(const std::string& path, const FileOptions& options = {});
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// How its tensors come into memory: never automatic.
  [[nodiscard]] Io io() const noexcept { return io_; }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// Exactly out.size() bytes at `offset`; Errc::truncated when the range lies outside the file as it was
  /// opened, Errc::file_changed when the file is shorter than that by now.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t offset, std::uint64_t length) const;
  [[nodiscard]] bool copies_on_write() const noexcept { return sharing_ == Sharing::copy_on_write; }

  /// The whole file, mapped on first use and kept until the File is gone. Empty for an empty file.
  [[nodiscard]] std::span<const std::byte> map() const;
  /// Throws Errc::file_changed when size or modification time differ from those at opening.
  void check_unchanged() const;

 private:
  struct Mapping;
  File(std::string path, int descriptor, const FileOptions& options);

  std::string path_;
  Sharing sharing_;
  Io io_;
  int descriptor_;
  std::uint64_t size_ = 0;
  std::int64_t modified_seconds_ = 0;
  std::int64_t modified_nanoseconds_ = 0;
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<const DirectFile> direct_;
};

}  // namespace ballast
