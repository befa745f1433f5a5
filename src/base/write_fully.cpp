// SPDX-License-Identifier: Apache-2.0
#include "base/write_fully.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fail.h"
#include "base/sizes.h"

namespace ballast {

void write_fully(int descriptor, const std::string& path, std::uint64_t offset,
                 std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptor, bytes.data(), std::min(bytes.size(), kBlockBytes), static_cast<off_t>(offset));
    const int reason = errno;
    if (count < 0 && reason == EINTR) continue;
    if (count < 0)
      fail_errno(reason, display(path),
                 fmt::format("cannot write {} bytes at offset {}", bytes.size(), offset));
    if (count == 0)
      fail(Errc::io_error, display(path), "the system wrote 0 of {} bytes at offset {}", bytes.size(),
           offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace ballast
