// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "ballast/display.h"
#include "base/checked.h"
#include "base/direct_file.h"

namespace ballast {
namespace {

constexpr std::size_t kLargestRead = 1U << 30U;  // Linux moves at most 2 GiB - 4 KiB a call

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Where the bytes may be on another machine. Not all of these are in the system's list.
bool is_remote(int descriptor) {
  constexpr std::array<std::uint32_t, 12> kRemote = {NFS_SUPER_MAGIC,
                                                     SMB_SUPER_MAGIC,
                                                     0xFF534D42U /* CIFS */,
                                                     0xFE534D42U /* SMB2 */,
                                                     CODA_SUPER_MAGIC,
                                                     AFS_SUPER_MAGIC,
                                                     V9FS_MAGIC,
                                                     0x65735546U /* FUSE */,
                                                     0x00C36400U /* Ceph */,
                                                     0x0BD00BD0U /* Lustre */,
                                                     0x47504653U /* GPFS */,
                                                     0x19830326U /* BeeGFS */};

  struct statfs system {};

  return fstatfs(descriptor, &system) == 0 &&
         std::find(kRemote.begin(), kRemote.end(), static_cast<std::uint32_t>(system.f_type)) !=
             kRemote.end();
}

// O_NONBLOCK: opening a pipe must not wait for its writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Part by part, for kernels and sandboxes without openat2: each is looked up in the folder that is held open.
int open_by_parts(const std::string& path) {
  int folder = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t at = 1; folder >= 0;) {
    const std::size_t end = path.find('/', at);
    const bool is_last = end == std::string::npos;
    const std::string part = path.substr(at, is_last ? end : end - at);
    const int next =
        openat(folder, part.c_str(), O_NOFOLLOW | (is_last ? kOpenFlags : O_PATH | O_DIRECTORY | O_CLOEXEC));
    // A link where a folder should be is ENOTDIR with O_PATH.
    const int reason = next < 0 && !is_last && errno == ENOTDIR ? ELOOP : errno;
    close(folder);
    errno = reason;
    if (is_last || next < 0) return next;
    folder = next;
    at = end + 1;
  }
  return folder;
}

int open_without_links(const std::string& path) {
  if (!path.starts_with('/')) {
    errno = EINVAL;
    return -1;
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kOpenFlags);
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long found = syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  if (found >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL)) return static_cast<int>(found);
  return open_by_parts(path);
}

}  // namespace

struct File::Mapping {
  std::once_flag once;
  std::span<const std::byte> bytes;

  ~Mapping() {
    if (!bytes.empty()) munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
};

File::File(std::string path, int descriptor, const FileOptions& options)
    : path_(std::move(path)),
      sharing_(options.sharing),
      io_(options.io),
      descriptor_(descriptor),
      mapping_(std::make_unique<Mapping>()) {}

File::~File() {
  close(descriptor_);
}

std::shared_ptr<const File> File::open(const std::string& path, const FileOptions& options) {
  if (path.find('\0') != std::string::npos)
    fail(Errc::invalid_argument, display(path), "a file's name cannot hold a zero byte");
  const int descriptor = options.follow_links ? ::open(path.c_str(), kOpenFlags) : open_without_links(path);
  if (descriptor < 0) {
    const int reason = errno;
    if (reason == ELOOP && !options.follow_links)
      fail(Errc::path_escape, display(path), "has become a link since it was looked at");
    fail_errno(reason, display(path), "cannot open");
  }
  const std::shared_ptr<File> file(new File(path, descriptor, options));

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
  if (options.io == Io::automatic) file->io_ = is_remote(descriptor) ? Io::read : Io::map;
  if (options.io == Io::direct) file->direct_ = std::make_unique<DirectFile>(descriptor, path);
  return file;
}

void File::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (!fits(offset, out.size(), size_)) {
    fail(Errc::truncated, display(path_), "needs {} bytes at offset {}, the file has {}", out.size(), offset,
         size_);
  }
  if (direct_ && out.size() >= DirectFile::kSmallest) {
    const std::size_t count = direct_->read(offset, out);
    out = out.subspan(count);
    offset += count;
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

}  // namespace ballast
