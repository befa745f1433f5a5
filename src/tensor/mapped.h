// SPDX-License-Identifier: Apache-2.0
// Storage that is a range of a file.
#pragma once

#include <memory>

#include "ballast/storage.h"

namespace ballast {

enum class FileAccess : std::uint8_t {
  map,   ///< data() is a view of the file's mapping
  read,  ///< data() reads the range into memory of its own
};

/// What the file was opened for.
[[nodiscard]] FileAccess access_of(const File& file) noexcept;

/// Bytes [offset, offset + size) of `file`, which must lie inside it. `holds_many`: see
/// Storage::holds_many().
[[nodiscard]] std::shared_ptr<const Storage> file_storage(std::shared_ptr<const File> file,
                                                          std::uint64_t offset, std::uint64_t size,
                                                          FileAccess access, bool holds_many = false);

}  // namespace ballast
