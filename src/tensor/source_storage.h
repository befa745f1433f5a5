// SPDX-License-Identifier: Apache-2.0
// Between sources of bytes and storages: a range of a source as a storage, a storage as a source.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ballast/byte_source.h"
#include "ballast/storage.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

enum class Access : std::uint8_t {
  map,   ///< data() is a view of the source's mapping
  read,  ///< data() reads the range into memory of its own
};

/// What the source was opened for.
[[nodiscard]] inline Access access_of(const ByteSource& source) noexcept {
  return source.is_mapped() ? Access::map : Access::read;
}

/// Bytes [offset, offset + size), which must lie inside. `holds_many`: see Storage::holds_many().
[[nodiscard]] std::shared_ptr<const Storage> range_of(const ByteSource& source, std::uint64_t offset,
                                                      std::uint64_t size, Access access,
                                                      bool holds_many = false);

[[nodiscard]] inline std::shared_ptr<const Storage> range_of(const ByteSource& source, std::uint64_t offset,
                                                             std::uint64_t size) {
  return range_of(source, offset, size, access_of(source));
}

/// The same for elements of `item` bytes: what does not lie on a multiple of it is not mapped, but read into
/// memory of its own when it is needed.
[[nodiscard]] std::shared_ptr<const Storage> elements_of(const ByteSource& source, std::uint64_t offset,
                                                         std::uint64_t size, std::uint64_t item);

/// Bytes to parse: copied out of a file once, so that they cannot change under the parser. They must lie
/// inside.
[[nodiscard]] std::shared_ptr<const Storage> load_range(const ByteSource& source, std::uint64_t offset,
                                                        std::uint64_t size);

/// A part of another storage, which it keeps alive.
[[nodiscard]] std::shared_ptr<const Storage> slice_storage(std::shared_ptr<const Storage> whole,
                                                           std::uint64_t offset, std::uint64_t size);

[[nodiscard]] inline std::span<const std::byte> span_of(const Storage& storage) {
  return {storage.data(), static_cast<std::size_t>(storage.size())};
}

}  // namespace ballast

#pragma GCC visibility pop
