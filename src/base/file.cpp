// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "ballast/display.h"
#include "base/checked.h"

namespace ballast {
namespace {

constexpr std::size_t kLargestRead = 1U << 30U;  // Linux moves at most 2 GiB - 4 KiB a call

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

struct File::Mapping {
  std::once_flag once;
  std::span<const std::byte> bytes;

  ~Mapping() {
    if (!bytes.empty()) munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
};

File::File(std::string path, int descriptor, Sharing sharing)
    : path_(std::move(path)),
      sharing_(sharing),
      descriptor_(descriptor),
      mapping_(std::make_unique<Mapping>()) {}

File::~File() {
  close(descriptor_);
}

std::shared_ptr<const File> File::open(const std::string& path, Sharing sharing) {
  if (path.find('\0') != std::string::npos)
    fail(Errc::invalid_argument, display(path), "a file's name cannot hold a zero byte");
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    const int reason = errno;
    fail_errno(reason, display(path), "cannot open");
  }
  const std::shared_ptr<File> file(new File(path, descriptor, sharing));

  struct stat status {};

  if (fstat(descriptor, &status) != 0) {
    const int reason = errno;
    fail_errno(reason, display(path), "cannot look at");
  }
  if (!S_ISREG(status.st_mode)) {
    fail(Errc::not_regular_file, display(path), "is {}, a regular file is needed", kind_of(status.st_mode));
  }
  file->size_ = static_cast<std::uint64_t>(status.st_size);
  file->modified_seconds_ = status.st_mtim.tv_sec;
  file->modified_nanoseconds_ = status.st_mtim.tv_nsec;
  file->device_ = status.st_dev;
  file->inode_ = status.st_ino;
  return file;
}

void File::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (!fits(offset, out.size(), size_)) {
    fail(Errc::truncated, display(path_), "needs {} bytes at offset {}, the file has {}", out.size(), offset,
         size_);
  }
  while (!out.empty()) {
    const ssize_t count =
        pread(descriptor_, out.data(), std::min(out.size(), kLargestRead), static_cast<off_t>(offset));
    const int reason = errno;
    if (count < 0 && reason == EINTR) continue;
    if (count < 0) fail_errno(reason, display(path_), fmt::format("cannot read at offset {}", offset));
    if (count == 0) {
      fail(Errc::file_changed, display(path_), "ends at offset {}, it had {} bytes when it was opened",
           offset, size_);
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

std::vector<std::byte> File::read(std::uint64_t offset, std::uint64_t length) const {
  if (!fits(offset, length, size_)) {  // before the allocation: the length may come from the file
    fail(Errc::truncated, display(path_), "needs {} bytes at offset {}, the file has {}", length, offset,
         size_);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  read(offset, bytes);
  return bytes;
}

std::span<const std::byte> File::map() const {
  std::call_once(mapping_->once, [this] {
    if (size_ == 0) return;
    // Without NORESERVE a private mapping counts as memory that will be needed, and a file larger than that
    // is refused.
    void* address = copies_on_write() ? mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_NORESERVE, descriptor_, 0)
                                      : mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (address == MAP_FAILED) {
      const int reason = errno;
      fail_errno(reason, display(path_), fmt::format("cannot map {} bytes", size_));
    }
    mapping_->bytes = {static_cast<const std::byte*>(address), static_cast<std::size_t>(size_)};
  });
  return mapping_->bytes;
}

void File::check_unchanged() const {
  struct stat status {};

  if (fstat(descriptor_, &status) != 0) {
    const int reason = errno;
    fail_errno(reason, display(path_), "cannot look at");
  }
  if (static_cast<std::uint64_t>(status.st_size) != size_) {
    fail(Errc::file_changed, display(path_), "has {} bytes, it had {} when it was opened", status.st_size,
         size_);
  }
  if (status.st_mtim.tv_sec != modified_seconds_ || status.st_mtim.tv_nsec != modified_nanoseconds_) {
    fail(Errc::file_changed, display(path_), "was written to while it was read");
  }
}

bool File::is_same_file(const std::string& path) const noexcept {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

}  // namespace ballast
