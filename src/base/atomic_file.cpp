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
#include <random>
#include <vector>

#include "base/bytes.h"
#include "base/checked.h"
#include "ballast/display.h"
#include "base/file.h"

namespace ballast {
namespace {

// Measured: larger writes ask the kernel for larger page-cache folios, which are slow to come by on virtual machines.
constexpr std::size_t kBlock = 256U << 10U;

// Temporaries in existence, as plain characters, so that a signal handler can remove them.
constexpr std::size_t kMaxUnfinished = 64;
struct Unfinished {
  std::atomic<int> state{0};  // 0 free, 1 being filled, 2 listed
  std::array<char, PATH_MAX> path{};
};
std::array<Unfinished, kMaxUnfinished> unfinished;  // constant-initialised: no static constructor runs

void list_unfinished(const std::string& path) noexcept {
  if (path.size() >= PATH_MAX) return;
  for (Unfinished& entry : unfinished) {
    int expected = 0;
    if (!entry.state.compare_exchange_strong(expected, 1)) continue;
    std::memcpy(entry.path.data(), path.c_str(), path.size() + 1);
    entry.state.store(2);
    return;
  }
}

void unlist_unfinished(const std::string& path) noexcept {
  for (Unfinished& entry : unfinished) {
    int expected = 2;
    if (entry.state.load() != 2 || path != entry.path.data()) continue;
    entry.state.compare_exchange_strong(expected, 0);
    return;
  }
}

// The file a name finally stands for: a symbolic link is written through, also when what it points to is not there yet.
std::string resolve(const std::string& path) {
  std::string current = path;
  for (int hops = 0; hops < 40; ++hops) {
    std::array<char, PATH_MAX> link{};
    const ssize_t length = readlink(current.c_str(), link.data(), link.size());
    if (length < 0) return current;
    const std::string next(link.data(), static_cast<std::size_t>(length));
    const std::size_t slash = current.rfind('/');
    current = next.starts_with('/') || slash == std::string::npos ? next : current.substr(0, slash + 1) + next;
  }
  fail(Errc::io_error, display(path), "too many symbolic links");
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& target) {
  const std::size_t slash = target.rfind('/');
  const std::size_t name_at = slash == std::string::npos ? 0 : slash + 1;
  std::random_device random;
  // Cut so that the temporary's name is legal wherever the target's is.
  const std::string base = target.substr(name_at, 200);
  return target.substr(0, name_at) + fmt::format(".{}.{:08x}{:08x}.tmp", base, random(), random());
}

mode_t mode_for(const std::string& target) {
  struct stat status {};
  if (stat(target.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) fail(Errc::not_regular_file, display(target), "is there and is not a regular file");
    return status.st_mode & 07777U;
  }
  const mode_t mask = umask(0);
  umask(mask);
  return 0666U & ~mask;
}

void write_fully(int descriptor, const std::string& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptor, bytes.data(), std::min(bytes.size(), kBlock), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno(errno, display(path), fmt::format("cannot write {} bytes at offset {}", bytes.size(), offset));
    if (count == 0) fail(Errc::io_error, display(path), "the system wrote 0 of {} bytes at offset {}", bytes.size(), offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void sync_folder(const std::string& folder, const std::string& path) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail_errno(errno, display(path), "cannot open its folder to make the new name durable");
  const int result = fsync(descriptor);
  const int reason = errno;
  close(descriptor);
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to be done there.
  if (result != 0 && reason != EINVAL) fail_errno(reason, display(path), "cannot make the new name durable");
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, bool overwrite)
    : path_(path), target_(resolve(path)), temporary_(temporary_name(target_)), overwrite_(overwrite) {
  if (path.empty()) fail(Errc::invalid_argument, "", "an output needs a name");
  struct stat status {};
  if (!overwrite_ && lstat(target_.c_str(), &status) == 0) {
    fail(Errc::already_exists, display(path_), "is there already (overwriting was not asked for)");
  }
  const mode_t mode = mode_for(target_);
  list_unfinished(temporary_);
  descriptor_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (descriptor_ < 0) {
    const int reason = errno;
    unlist_unfinished(temporary_);
    fail_errno(reason, display(path_), "cannot create a file in its folder");
  }
  if (fchmod(descriptor_, mode) != 0) {  // the umask may have taken away what the old file had
    const int reason = errno;
    discard();
    fail_errno(reason, display(path_), "cannot set the file's mode");
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (descriptor_ < 0) return;
  close(descriptor_);
  descriptor_ = -1;
  unlink(temporary_.c_str());
  unlist_unfinished(temporary_);
}

void AtomicFile::reserve(std::uint64_t size) {
  if (size == 0) return;
  const auto length = checked_cast<off_t>(size, display(path_));
  int result = 0;
  do {
    result = posix_fallocate(descriptor_, 0, length);
  } while (result == EINTR);
  // File systems without allocation: the size alone, so that a limit is still met early.
  if (result == EOPNOTSUPP || result == EINVAL) result = ftruncate(descriptor_, length) == 0 ? 0 : errno;
  if (result != 0) fail_errno(result, display(path_), fmt::format("cannot make room for {} bytes", size));
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  write_at(position_, bytes);
  position_ += bytes.size();
}

void AtomicFile::append(std::string_view text) { append(as_bytes(text)); }

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_fully(descriptor_, path_, offset, bytes);
}

void AtomicFile::copy_at(std::uint64_t offset, const File& source, std::uint64_t source_offset, std::uint64_t length) {
  if (!fits(source_offset, length, source.size())) {
    fail(Errc::truncated, display(source.path()), "needs {} bytes at offset {}, the file has {}", length, source_offset,
         source.size());
  }
  while (length > 0) {
    auto from = static_cast<off_t>(source_offset);
    auto to = static_cast<off_t>(offset);
    const ssize_t count =
        copy_file_range(source.descriptor(), &from, descriptor_, &to, std::min<std::uint64_t>(length, 1U << 30U), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // other file systems, old kernels, or nothing left: the plain way finds out which
    source_offset += static_cast<std::uint64_t>(count);
    offset += static_cast<std::uint64_t>(count);
    length -= static_cast<std::uint64_t>(count);
  }
  std::vector<std::byte> block(static_cast<std::size_t>(std::min<std::uint64_t>(length, kBlock)));
  while (length > 0) {
    const auto piece = std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(length, kBlock)));
    source.read(source_offset, piece);
    write_at(offset, piece);
    source_offset += piece.size();
    offset += piece.size();
    length -= piece.size();
  }
}

void AtomicFile::commit() {
  try {
    if (fsync(descriptor_) != 0) fail_errno(errno, display(path_), "the data did not reach the disk");
    if (close(std::exchange(descriptor_, -1)) != 0) fail_errno(errno, display(path_), "cannot close");
    if (overwrite_) {
      if (rename(temporary_.c_str(), target_.c_str()) != 0) fail_errno(errno, display(path_), "cannot take its final name");
    } else if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) != 0) {
      // File systems that do not know the flag: link() refuses an existing name as well.
      if (errno != EINVAL && errno != ENOSYS) fail_errno(errno, display(path_), "cannot take its final name");
      if (link(temporary_.c_str(), target_.c_str()) != 0) fail_errno(errno, display(path_), "cannot take its final name");
      unlink(temporary_.c_str());
    }
  } catch (...) {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
    unlink(temporary_.c_str());
    unlist_unfinished(temporary_);
    throw;
  }
  unlist_unfinished(temporary_);
  sync_folder(folder_of(target_), path_);
}

void discard_unfinished_files() noexcept {
  for (Unfinished& entry : unfinished) {
    if (entry.state.load() == 2) unlink(entry.path.data());
  }
}

}  // namespace ballast
