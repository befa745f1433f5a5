// SPDX-License-Identifier: Apache-2.0
// Files, written: a temporary in the same folder that gets the final name only when every byte is on the
// disk. Whatever goes wrong, the old file stays as it was and the temporary goes away.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ballast/detail/function.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class ByteSource;
class FileCover;

/// Who may read and write a new file.
enum class FileMode : std::uint8_t { usual, secret };

/// A target that is a symbolic link: the user named it, and what it leads to is written; or its name was made
/// by us, in a folder that may be anybody's, and the link itself is what is there and what is replaced.
enum class Links : std::uint8_t { follow, replace };

class AtomicFile {
 public:
  /// Creates the temporary. With `overwrite` false an existing target is refused now and again at commit().
  /// Who may read and write is as with the old file, or 0666 less the umask; its owner alone where it is
  /// secret.
  AtomicFile(const std::string& path, bool overwrite, FileMode mode = FileMode::usual,
             Links links = Links::follow);

  /// Does not wait for the disk any more: a power cut soon after commit() may leave a damaged file.
  void give_up_durability() noexcept { durable_ = false; }

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  ///< without commit(): removes the temporary

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Gives the file its final size at once, so that a full disk is known before the work.
  void reserve(std::uint64_t size);
  /// Appends after everything appended so far. Not for use from several threads.
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text);

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  /// Writes at a place of its own; safe from several threads.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Copies a range of another file inside the kernel where the file systems can; safe from several threads.
  void copy_at(std::uint64_t offset, const ByteSource& source, std::uint64_t source_offset,
               std::uint64_t length);
  /// What is there so far, to be looked at before it gets its name. Not after seal().
  [[nodiscard]] std::shared_ptr<const ByteSource> written() const;
  /// fsync and close: every byte is on the disk, still without its name. Only commit() may follow. For files
  /// that are published together.
  void seal();
  /// seal(), rename, fsync of the folder. Nothing may be called after it.
  void commit();

  /// False until commit() renamed it, also when something failed after that.
  [[nodiscard]] bool has_final_name() const noexcept { return named_; }

 private:
  void discard() noexcept;
  void take_final_name();
  void start_disk(std::uint64_t more) noexcept;
  void write_to_disk(std::uint64_t offset, std::span<const std::byte> bytes);
  void put_on(std::unique_ptr<FileCover> cover);

  std::string path_;    // as given, for messages
  std::string target_;  // with links resolved
  std::string temporary_;
  bool overwrite_;
  bool durable_ = true;
  int descriptor_ = -1;
  bool sealed_ = false;  // written and closed, not yet renamed
  bool named_ = false;
  int entry_ = -1;  // in the list of unfinished files
  std::uint64_t position_ = 0;
  std::atomic<std::uint64_t> written_{0};  // bytes handed to the kernel
  std::unique_ptr<FileCover> cover_;       // file_cover.h; null: bytes lie on the disk as they are written
};

/// A file that has its name already and counts only together with others: gone again, also after a signal,
/// unless it was kept.
class ProvisionalFile {
 public:
  explicit ProvisionalFile(std::string path);
  ProvisionalFile(const ProvisionalFile&) = delete;
  ProvisionalFile& operator=(const ProvisionalFile&) = delete;
  ~ProvisionalFile();
  void keep() noexcept;

 private:
  std::string path_;
  bool kept_ = false;
  int entry_ = -1;  // in the list of unfinished files
};

/// Removes temporaries that processes of this machine which are dead now left for files whose names begin
/// with that of `target`, in its folder.
void sweep_temporaries(const std::string& target) noexcept;

/// A folder for files about to be written: made when it is not there, and gone again unless it was kept.
class NewFolder {
 public:
  explicit NewFolder(std::string path);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();
  void keep();

 private:
  std::string path_;
  bool made_ = false;
  int entry_ = -1;  // in the list of unfinished files
};

/// A whole file at once (io.h declares it for users).
void save_text(std::string_view text, const std::string& path, bool overwrite);
void save_secret(std::string_view text, const std::string& path, bool overwrite);
void save_pieces(const std::string& path, bool overwrite,
                 const Function<void(const Function<void(std::span<const std::byte>)>&)>& write);

/// Removes the temporaries of all AtomicFiles still open, folders not yet kept, and scratch folders with what
/// is in them: async-signal-safe, for a program's own signal handler.
void discard_unfinished_files() noexcept;

}  // namespace ballast

#pragma GCC visibility pop
