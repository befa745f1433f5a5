// SPDX-License-Identifier: Apache-2.0
#include "base/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast {
namespace {

constexpr std::size_t kAlignment = 4096;  // no disk in use asks for more
constexpr std::size_t kBuffer = std::size_t{1} << 20U;

// One for each thread that ever read like this: fresh memory for each read would cost as much as the read.
std::byte* buffer() {
  thread_local std::vector<std::byte> kept(kBuffer + kAlignment);
  void* first = kept.data();
  std::size_t room = kept.size();
  return static_cast<std::byte*>(std::align(kAlignment, kBuffer, first, room));
}

}  // namespace

// By its descriptor, since another file may have the path by now.
DirectFile::DirectFile(int descriptor, std::string path)
    : path_(std::move(path)),
      descriptor_(
          ::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT)) {
  if (descriptor_ >= 0) return;
  const int reason = errno;
  if (reason == EINVAL)
    fail(Errc::unsupported, display(path_),
         "cannot be read past the page cache: its file system does not allow that (plain reads do it)");
  fail_errno(reason, display(path_), "cannot open");
}

DirectFile::~DirectFile() {
  close(descriptor_);
}

std::size_t DirectFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t wanted = offset + done;
    const std::uint64_t first = wanted / kAlignment * kAlignment;
    const std::size_t before = wanted - first;
    const std::size_t needed =
        (std::min(out.size() - done, kBuffer - before) + before + kAlignment - 1) / kAlignment * kAlignment;
    const ssize_t count = pread(descriptor_, buffer(), needed, static_cast<off_t>(first));
    const int reason = errno;
    if (count < 0 && reason == EINTR) continue;
    if (count < 0) fail_errno(reason, display(path_), fmt::format("cannot read at offset {}", first));
    if (static_cast<std::size_t>(count) <= before) break;  // the end of the file
    const std::size_t taken = std::min(static_cast<std::size_t>(count) - before, out.size() - done);
    std::memcpy(out.data() + done, buffer() + before, taken);
    done += taken;
  }
  return done;
}

}  // namespace ballast
