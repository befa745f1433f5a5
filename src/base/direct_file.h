// SPDX-License-Identifier: Apache-2.0
// Reading past the page cache: the disk's own blocks into a buffer that is aligned as it wants it, and from
// there to where they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ballast {

class DirectFile {
 public:
  /// Smaller reads are headers and the like: they gain nothing, and would read whole blocks again and again.
  static constexpr std::size_t kSmallest = 64U << 10U;

  /// The file behind `descriptor`, opened once more; Errc::unsupported where its file system does not allow
  /// it.
  DirectFile(int descriptor, std::string path);
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  ~DirectFile();

  /// As many bytes of `out` as there are from `offset` on.
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace ballast
