// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/file_cover.h"
#include "base/sizes.h"
#include "base/temporary_name.h"
#include "base/unfinished.h"
#include "base/unfinished_source.h"
#include "base/write_fully.h"

namespace ballast {
namespace {

constexpr std::uint64_t kStartDisk = std::uint64_t{64} << 20U;  // bytes after which the disk is set to work

// The file a name finally stands for: a symbolic link is written through, also when what it points to is not
// there yet.
std::string resolve(const std::string& path) {
  std::string current = path;
  for (int hops = 0; hops < 40; ++hops) {
    std::array<char, PATH_MAX> link{};
    const ssize_t length = readlink(current.c_str(), link.data(), link.size());
    if (length < 0) return current;
    const std::string_view next(link.data(), static_cast<std::size_t>(length));
    const std::size_t slash = current.rfind('/');
    current.resize(next.starts_with('/') || slash == std::string::npos ? 0 : slash + 1);
    current += next;
  }
  fail(Errc::io_error, display(path), "too many symbolic links");
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file that will be replaced, when there is one.
std::optional<struct stat> old_file(const std::string& target) {
  struct stat status {};

  if (lstat(target.c_str(), &status) != 0 || S_ISLNK(status.st_mode)) return std::nullopt;
  if (!S_ISREG(status.st_mode))
    fail(Errc::not_regular_file, display(target), "is there and is not a regular file");
  return status;
}

// The new file gets the permissions of the old one, and its owner where this process may change owners.
// Set-user-ID and set-group-ID are dropped: they were given to the old contents.
bool take_over(int descriptor, const struct stat& old, FileMode wanted) {
  mode_t mode = old.st_mode & (wanted == FileMode::secret ? 0600U : 0777U);
  const bool same_owner = old.st_uid == geteuid() && old.st_gid == getegid();
  if (!same_owner && fchown(descriptor, old.st_uid, old.st_gid) != 0 &&
      fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) != 0) {
    mode &= ~070U;  // what the old group could do is not for ours
  }
  return fchmod(descriptor, mode) == 0;
}

void sync_folder(const std::string& folder, const std::string& path) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    const int reason = errno;
    fail_errno(reason, display(path), "cannot open its folder to make the new name durable");
  }
  const int result = fsync(descriptor);
  const int reason = errno;
  close(descriptor);
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to be done there.
  if (result != 0 && reason != EINVAL) fail_errno(reason, display(path), "cannot make the new name durable");
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, bool overwrite, FileMode wanted, Links links)
    : path_(path), overwrite_(overwrite) {
  if (path.empty()) fail(Errc::invalid_argument, "", "an output needs a name");
  if (path.find('\0') != std::string::npos)
    fail(Errc::invalid_argument, display(path), "a file's name cannot hold a zero byte");
  target_ = links == Links::follow ? resolve(path) : path;
  temporary_ = temporary_name(target_);

  struct stat status {};

  if (!overwrite_ && lstat(target_.c_str(), &status) == 0) {
    fail(Errc::already_exists, display(path_), "is there already (overwriting was not asked for)");
  }
  const auto old = old_file(target_);
  entry_ = list_unfinished(temporary_);
  // 0666: the kernel takes the umask away, as it does for every new file. A private old file is not laid open
  // meanwhile.
  const mode_t fresh = wanted == FileMode::secret ? 0600U : 0666U;
  const mode_t mode = old ? old->st_mode & 0600U : fresh;
  descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (descriptor_ < 0) {
    const int reason = errno;
    unlist_unfinished(entry_);
    if (reason == ENOENT)
      fail(Errc::file_not_found, display(path_), "its folder {} is not there; make it first",
           ballast::quoted(folder_of(target_)));
    fail_errno(reason, display(path_), "cannot create a file in its folder");
  }
  if (old && !take_over(descriptor_, *old, wanted)) {
    const int reason = errno;
    discard();
    fail_errno(reason, display(path_), "cannot set the file's mode");
  }
  try {
    if (auto cover = CoverScope::make()) put_on(std::move(cover));
  } catch (...) {
    discard();  // no destructor runs for what was not made
    throw;
  }
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() noexcept {
  if (descriptor_ < 0 && !sealed_) return;
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  sealed_ = false;
  unlink(temporary_.c_str());
  unlist_unfinished(entry_);
}

void AtomicFile::reserve(std::uint64_t size) {
  if (cover_) size = cover_->reserve(size);
  if (size == 0) return;
  const auto length = checked_cast<off_t>(size, display(path_));
  int result = 0;
  do {
    result = fallocate(descriptor_, 0, 0, length) == 0 ? 0 : errno;
  } while (result == EINTR);
  // File systems without allocation: the size alone, so that a limit is still met early. (posix_fallocate
  // would write every block.)
  if (result == EOPNOTSUPP || result == ENOSYS || result == EINVAL)
    result = ftruncate(descriptor_, length) == 0 ? 0 : errno;
  if (result != 0) fail_errno(result, display(path_), fmt::format("cannot make room for {} bytes", size));
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  write_at(position_, bytes);
  position_ += bytes.size();
}

void AtomicFile::append(std::string_view text) {
  append(as_bytes(text));
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (cover_)
    cover_->write_at(offset, bytes);
  else
    write_to_disk(offset, bytes);
}

void AtomicFile::write_to_disk(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_fully(descriptor_, path_, offset, bytes);
  start_disk(bytes.size());
}

// Lets the disk begin while more comes: else it idles until fsync(), or until the kernel has had enough.
void AtomicFile::start_disk(std::uint64_t more) noexcept {
  const std::uint64_t before = written_.fetch_add(more, std::memory_order_relaxed);
  if (!durable_ || before / kStartDisk == (before + more) / kStartDisk) return;
  static_cast<void>(sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE));  // fsync() reports errors
}

void AtomicFile::put_on(std::unique_ptr<FileCover> cover) {
  cover_ = std::move(cover);
  cover_->begin({.write = [this](std::uint64_t offset,
                                 std::span<const std::byte> bytes) { write_to_disk(offset, bytes); },
                 .read =
                     [this](std::uint64_t offset, std::span<std::byte> out) {
                       const UnfinishedSource disk(path_, offset + out.size(), descriptor_);
                       disk.read(offset, out);
                     }});
}

std::shared_ptr<const ByteSource> AtomicFile::written() const {
  if (cover_) return written_under(*cover_, path_);

  struct stat status {};

  if (fstat(descriptor_, &status) != 0) fail_errno(errno, display(path_), "cannot be read again");
  return std::make_shared<UnfinishedSource>(path_, static_cast<std::uint64_t>(status.st_size), descriptor_);
}

void AtomicFile::copy_at(std::uint64_t offset, const ByteSource& source, std::uint64_t source_offset,
                         std::uint64_t length) {
  if (!fits(source_offset, length, source.size())) {
    fail(Errc::truncated, source.where(), "needs {} bytes at offset {}, the file has {}", length,
         source_offset, source.size());
  }
  const File* file = file_of(source);
  const bool by_kernel =
      !cover_ && file != nullptr && file->io() != Io::direct;  // which would go through the page cache
  const auto held = by_kernel ? std::make_unique<File::Descriptor>(*file) : nullptr;
  while (held && held->get() >= 0 && length > 0) {
    auto from = static_cast<off_t>(source_offset);
    auto to = static_cast<off_t>(offset);
    const ssize_t count =
        copy_file_range(held->get(), &from, descriptor_, &to, std::min<std::uint64_t>(length, kStartDisk), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // other file systems, old kernels, or nothing left: the plain way finds out which
    start_disk(static_cast<std::uint64_t>(count));
    source_offset += static_cast<std::uint64_t>(count);
    offset += static_cast<std::uint64_t>(count);
    length -= static_cast<std::uint64_t>(count);
  }
  std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(length, kBlockBytes)));
  while (length > 0) {
    const auto piece =
        std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(length, kBlockBytes)));
    source.read(source_offset, piece);
    write_at(offset, piece);
    source_offset += piece.size();
    offset += piece.size();
    length -= piece.size();
  }
}

void AtomicFile::take_final_name() {
  const char* from = temporary_.c_str();
  const char* to = target_.c_str();
  if (overwrite_) {
    if (rename(from, to) == 0) return;
  } else {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return;
    if (errno == EINVAL || errno == ENOSYS) {
      // File systems that do not know the flag: link() refuses an existing name as well. Those that know
      // neither: the last look and the renaming are two steps there, and nothing better can be had.
      if (link(from, to) == 0) return static_cast<void>(unlink(from));

      struct stat status {};

      const bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
      if (no_links && lstat(to, &status) == 0)
        errno = EEXIST;
      else if (no_links && rename(from, to) == 0)
        return;
    }
  }
  const int reason = errno;
  fail_errno(reason, display(path_), "cannot take its final name");
}

void AtomicFile::seal() {
  if (descriptor_ < 0) fail(Errc::invalid_argument, display(path_), "was sealed or committed already");
  if (cover_) cover_->finish();
  if (durable_ && fsync(descriptor_) != 0) {
    const int reason = errno;
    discard();
    fail_errno(reason, display(path_), "the data did not reach the disk");
  }
  sealed_ = true;
  if (close(std::exchange(descriptor_, -1)) != 0) {
    const int reason = errno;
    discard();
    fail_errno(reason, display(path_), "cannot close");
  }
}

void AtomicFile::commit() {
  if (!sealed_) seal();
  try {
    take_final_name();
  } catch (...) {
    discard();
    throw;
  }
  sealed_ = false;
  named_ = true;
  unlist_unfinished(entry_);
  if (durable_) sync_folder(folder_of(target_), path_);
}

ProvisionalFile::ProvisionalFile(std::string path) : path_(std::move(path)), entry_(list_unfinished(path_)) {}

ProvisionalFile::~ProvisionalFile() {
  if (!kept_) unlink(path_.c_str());
  unlist_unfinished(entry_);
}

void ProvisionalFile::keep() noexcept {
  kept_ = true;
  unlist_unfinished(std::exchange(entry_, -1));
}

void sweep_temporaries(const std::string& target) noexcept {
  try {
    const std::string final = resolve(target);
    const std::string folder = folder_of(final);
    const std::string base = final.substr(final.rfind('/') + 1);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (is_left_behind(name, base)) unlink(entry.path().c_str());
    }
  } catch (
      const std::exception&) {  // a courtesy: whoever writes next finds out what is wrong with the folder
  }
}

NewFolder::NewFolder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  made_ = mkdir(path_.c_str(), 0777) == 0;
  if (!made_ && errno != EEXIST) fail_errno(errno, display(path_), "cannot make the folder");
  // Not before: it may be somebody's, and empty.
  if (made_) entry_ = list_unfinished(path_);
}

NewFolder::~NewFolder() {
  if (!made_) return;
  rmdir(path_.c_str());
  unlist_unfinished(entry_);
}

void NewFolder::keep() {
  if (!std::exchange(made_, false)) return;
  unlist_unfinished(entry_);
  sync_folder(folder_of(path_), path_);
}

}  // namespace ballast
