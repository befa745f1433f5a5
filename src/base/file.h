// SPDX-License-Identifier: Apache-2.0
// Files, read: a regular file, its size known once, read by position or mapped. The size is checked again by
// whoever depends on it (check_unchanged()); a file that shrinks gives an Error and not zeros.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ballast/byte_source.h"
#include "ballast/runtime.h"

struct stat;

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class DirectFile;

/// What map() gives: the file itself, or memory that may be written and then belongs to this process alone.
enum class Sharing : std::uint8_t { read_only, copy_on_write };

struct FileOptions {
  Sharing sharing = Sharing::read_only;
  Io io = Io::automatic;
  /// False for an absolute path whose links were resolved and judged before (containers/confine.h): a link
  /// anywhere in it has been put there since, and is Errc::path_escape.
  bool follow_links = true;
};

/// Exactly out.size() bytes of an open file, which `source` is: Errc::file_changed when it has become
/// shorter.
void read_descriptor(int descriptor, std::uint64_t offset, std::span<std::byte> out,
                     const ByteSource& source);

class File final : public ByteSource {
 public:
  /// Regular files only: a folder, pipe or device is Errc::not_regular_file, and opening one never blocks.
  static std::shared_ptr<const File> open(const std::string& path, const FileOptions& options = {});
  ~File() override;

  [[nodiscard]] const std::string& path() const noexcept { return name(); }

  /// How its tensors come into memory: never automatic.
  [[nodiscard]] Io io() const noexcept { return options_.io; }

  [[nodiscard]] bool is_mapped() const noexcept override { return io() == Io::map; }

  /// Mapped on first use.
  [[nodiscard]] std::span<const std::byte> map() const override;

  [[nodiscard]] bool is_writable() const noexcept override {
    return options_.sharing == Sharing::copy_on_write;
  }

  /// Device, number, size and time of the last change.
  [[nodiscard]] std::string identity() const override;
  /// By size and modification time. A file that was replaced by another is still there, behind its mapping.
  void check_unchanged() const override;

  /// For the end of opening: maps the file when its tensors are views of it, and gives its descriptor back,
  /// which a program has only a thousand of; where it is needed again, the file is opened anew, and stays so.
  /// Files that are read keep theirs as long as there are few. Before others than the opener have the file.
  void settle() const;

  /// A descriptor for as long as it lives. get() is -1 where the path leads to another file by now.
  class Descriptor {
   public:
    explicit Descriptor(const File& file);
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();

    [[nodiscard]] int get() const noexcept { return descriptor_; }

   private:
    int descriptor_;
    bool is_own_;
  };

 private:
  struct Mapping;

  /// What tells one state of a file from another.
  struct State {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::uint64_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const State&, const State&) = default;
  };

  File(const std::string& path, int descriptor, const FileOptions& options, const State& state);
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override;
  void release() const noexcept;
  static State state_of(int descriptor, const std::string& where);
  static State state_in(const struct stat& status) noexcept;

  FileOptions options_;
  State state_;
  mutable std::atomic<int> descriptor_;  // -1: given back
  mutable std::string reopened_;         // under which path, when it was given back
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<const DirectFile> direct_;
};

/// Null when it is none.
[[nodiscard]] inline const File* file_of(const ByteSource& source) noexcept {
  return dynamic_cast<const File*>(&source);
}

}  // namespace ballast

#pragma GCC visibility pop
