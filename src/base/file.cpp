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
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/direct_file.h"
#include "base/lazy.h"

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

// Absolute, and without parts that are no names: resolved by whoever asks for it.
bool is_resolved(const std::string& path) {
  const std::string closed = path + "/";
  return path.starts_with('/') && closed.find("//") == std::string::npos &&
         closed.find("/./") == std::string::npos && closed.find("/../") == std::string::npos;
}

int open_without_links(const std::string& path) {
  if (!is_resolved(path)) {
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

struct OwnedDescriptor {
  int number;

  explicit OwnedDescriptor(int opened) : number(opened) {}
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;

  ~OwnedDescriptor() {
    if (number >= 0) close(number);
  }
};

int open_file(const std::string& path, bool follow_links) {
  return follow_links ? ::open(path.c_str(), kOpenFlags) : open_without_links(path);
}

// How many files keep a descriptor after they were opened: a process may mostly have 1024, and needs some for
// other things.
constexpr int kMostHeld = 256;
std::atomic<int> held_descriptors{0};

}  // namespace

struct File::Mapping {
  Lazy<std::span<const std::byte>> bytes;

  ~Mapping() {
    if (bytes.made().empty()) return;
    munmap(const_cast<std::byte*>(bytes.made().data()), bytes.made().size());
  }
};

File::File(const std::string& path, int descriptor, const FileOptions& options, const State& state)
    : ByteSource(path, state.size),
      options_(options),
      state_(state),
      descriptor_(descriptor),
      mapping_(std::make_unique<Mapping>()) {
  held_descriptors.fetch_add(1, std::memory_order_relaxed);
}

File::~File() {
  release();
}

void File::release() const noexcept {
  const int held = descriptor_.exchange(-1);
  if (held < 0) return;
  close(held);
  held_descriptors.fetch_sub(1, std::memory_order_relaxed);
}

File::State File::state_of(int descriptor, const std::string& where) {
  struct stat status {};

  if (fstat(descriptor, &status) != 0) {
    const int reason = errno;
    fail_errno(reason, where, "cannot look at");
  }
  if (!S_ISREG(status.st_mode))
    fail(Errc::not_regular_file, where, "is {}, a regular file is needed", kind_of(status.st_mode));
  return state_in(status);
}

File::State File::state_in(const struct stat& status) noexcept {
  return {.device = status.st_dev,
          .number = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

std::shared_ptr<const File> File::open(const std::string& path, const FileOptions& options) {
  if (path.find('\0') != std::string::npos)
    fail(Errc::invalid_argument, display(path), "a file's name cannot hold a zero byte");
  OwnedDescriptor descriptor(open_file(path, options.follow_links));
  if (descriptor.number < 0) {
    const int reason = errno;
    if (reason == ELOOP && !options.follow_links)
      fail(Errc::path_escape, display(path), "has become a link since it was looked at");
    fail_errno(reason, display(path), "cannot open");
  }
  const State state = state_of(descriptor.number, display(path));
  FileOptions how = options;
  if (how.io == Io::automatic) how.io = is_remote(descriptor.number) ? Io::read : Io::map;
  const std::shared_ptr<File> file(new File(path, descriptor.number, how, state));
  descriptor.number = -1;
  if (how.io == Io::direct) file->direct_ = std::make_unique<DirectFile>(file->descriptor_, path);
  return file;
}

std::shared_ptr<const ByteSource> file_source(const std::string& path, Io io) {
  auto file = File::open(path, {.io = io});
  file->settle();
  return file;
}

void File::settle() const {
  if (io() == Io::direct || descriptor_ < 0) return;
  if (is_mapped()) static_cast<void>(map());
  if (!is_mapped() && held_descriptors.load(std::memory_order_relaxed) <= kMostHeld) return;
  std::error_code ignored;  // then it is not found again
  reopened_ = std::filesystem::absolute(path(), ignored).string();
  release();
}

File::Descriptor::Descriptor(const File& file)
    : descriptor_(file.descriptor_.load()), is_own_(descriptor_ < 0) {
  if (!is_own_) return;
  OwnedDescriptor again(open_file(file.reopened_, file.options_.follow_links));

  struct stat status {};

  if (again.number < 0 || fstat(again.number, &status) != 0) return;
  const State now = state_in(status);
  // A mapping keeps the file's number to itself; without one, another file may have it by now.
  const bool is_same = file.is_mapped() ? now.device == file.state_.device && now.number == file.state_.number
                                        : now == file.state_;
  if (!is_same) return;
  // Who reads once mostly reads on, tensor by tensor: it is kept while there are few.
  if (held_descriptors.load(std::memory_order_relaxed) < kMostHeld) {
    int none = -1;
    is_own_ = false;
    descriptor_ = again.number;
    if (file.descriptor_.compare_exchange_strong(none, again.number)) {
      again.number = -1;
      held_descriptors.fetch_add(1, std::memory_order_relaxed);
    } else {
      descriptor_ = none;  // another thread was first
    }
    return;
  }
  descriptor_ = std::exchange(again.number, -1);
}

File::Descriptor::~Descriptor() {
  if (is_own_ && descriptor_ >= 0) close(descriptor_);
}

void read_descriptor(int descriptor, std::uint64_t offset, std::span<std::byte> out,
                     const ByteSource& source) {
  while (!out.empty()) {
    const ssize_t count =
        pread(descriptor, out.data(), std::min(out.size(), kLargestRead), static_cast<off_t>(offset));
    const int reason = errno;
    if (count < 0 && reason == EINTR) continue;
    if (count < 0) fail_errno(reason, source.where(), fmt::format("cannot read at offset {}", offset));
    if (count == 0) {
      fail(Errc::file_changed, source.where(), "ends at offset {}, it had {} bytes when it was opened",
           offset, source.size());
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void File::read_bytes(std::uint64_t offset, std::span<std::byte> out) const {
  if (direct_ && out.size() >= DirectFile::kSmallest) {
    const std::size_t count = direct_->read(offset, out);
    out = out.subspan(count);
    offset += count;
  }
  if (out.empty()) return;
  const Descriptor descriptor(*this);
  if (descriptor.get() < 0) {
    if (!is_mapped()) fail(Errc::file_changed, where(), "is not there any more, or is another file");
    std::memcpy(out.data(), map().data() + offset, out.size());
    return;
  }
  read_descriptor(descriptor.get(), offset, out, *this);
}

std::span<const std::byte> File::map() const {
  return mapping_->bytes.get([this]() -> std::span<const std::byte> {
    if (size() == 0) return {};
    const Descriptor descriptor(*this);
    if (descriptor.get() < 0) fail(Errc::file_changed, where(), "is not there any more, or is another file");
    // Without NORESERVE a private mapping counts as memory that will be needed, and a file larger than that
    // is refused.
    void* address = is_writable() ? mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                                         descriptor.get(), 0)
                                  : mmap(nullptr, size(), PROT_READ, MAP_SHARED, descriptor.get(), 0);
    if (address == MAP_FAILED) {
      const int reason = errno;
      fail_errno(reason, where(), fmt::format("cannot map {} bytes", size()));
    }
    return {static_cast<const std::byte*>(address), static_cast<std::size_t>(size())};
  });
}

std::string File::identity() const {
  return fmt::format("{:x}:{:x} {} {}.{:09}", state_.device, state_.number, state_.size, state_.seconds,
                     state_.nanoseconds);
}

void File::check_unchanged() const {
  const Descriptor descriptor(*this);
  if (descriptor.get() < 0) {
    if (is_mapped()) return;  // nobody finds the old file any more to write to it
    fail(Errc::file_changed, where(), "is not there any more, or is another file");
  }
  const State now = state_of(descriptor.get(), where());
  if (now.size != state_.size)
    fail(Errc::file_changed, where(), "has {} bytes, it had {} when it was opened", now.size, state_.size);
  if (now.seconds != state_.seconds || now.nanoseconds != state_.nanoseconds)
    fail(Errc::file_changed, where(), "was written to while it was read");
}

}  // namespace ballast
