// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a file to be parsed lie: a file, or memory (a file in memory, a stream inside another
// pickle, what a gzip file unpacks to).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ballast/storage.h"
#include "tensor/mapped.h"

namespace ballast {

class Source {
 public:
  Source(std::shared_ptr<const File> file, FileAccess access);
  explicit Source(const std::shared_ptr<const File>& file) : Source(file, access_of(*file)) {}
  Source(std::shared_ptr<const Storage> bytes, std::string where);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  [[nodiscard]] FileAccess access() const noexcept { return access_; }

  [[nodiscard]] const std::shared_ptr<const File>& file() const noexcept { return file_; }

  [[nodiscard]] const std::shared_ptr<const Storage>& bytes() const noexcept { return bytes_; }

  /// Exactly out.size() bytes. The range must lie inside.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// Bytes to parse: copied out of a file once, so that they cannot change under the parser. The range must
  /// lie inside.
  [[nodiscard]] std::shared_ptr<const Storage> load(std::uint64_t offset, std::uint64_t length) const;
  /// Bytes of a tensor: a view of the map, or read when needed. The range must lie inside.
  [[nodiscard]] std::shared_ptr<const Storage> range(std::uint64_t offset, std::uint64_t length) const;
  /// The same for elements of `item` bytes: what does not lie on a multiple of it is not mapped, but read
  /// into memory of its own when it is needed.
  [[nodiscard]] std::shared_ptr<const Storage> elements(std::uint64_t offset, std::uint64_t length,
                                                        std::uint64_t item) const;

 private:
  std::shared_ptr<const File> file_;
  std::shared_ptr<const Storage> bytes_;
  std::uint64_t size_ = 0;
  std::string where_;
  FileAccess access_ = FileAccess::map;
};

/// A part of another storage, which it keeps alive.
[[nodiscard]] std::shared_ptr<const Storage> slice_storage(std::shared_ptr<const Storage> whole,
                                                           std::uint64_t offset, std::uint64_t size);

[[nodiscard]] inline std::span<const std::byte> span_of(const Storage& storage) {
  return {storage.data(), static_cast<std::size_t>(storage.size())};
}

}  // namespace ballast
