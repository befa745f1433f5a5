// SPDX-License-Identifier: Apache-2.0
// Big files written by several threads: a list of parts whose places are known, each a few bytes, then
// content from a storage, then a few bytes made from the content's checksum. Contents stream through blocks
// of 256 KiB, so memory does not grow with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "ballast/runtime.h"
#include "ballast/storage.h"
#include "base/atomic_file.h"

namespace ballast::containers {

struct Part {
  std::uint64_t at = 0;     ///< where it begins in the file
  std::string before = {};  ///< bytes before the content
  std::shared_ptr<const Storage> storage = {};
  std::uint64_t offset = 0;      ///< of the content in the storage
  std::uint64_t size = 0;        ///< of the content
  std::uint32_t after_size = 0;  ///< bytes behind the content
  std::uint32_t crc = 0;         ///< CRC-32 of the content, known when it is written

  [[nodiscard]] std::uint64_t content_at() const noexcept { return at + before.size(); }

  [[nodiscard]] std::uint64_t end() const noexcept { return content_at() + size + after_size; }
};

/// Writes the bytes behind a part's content; its checksum is known.
using WriteAfter = std::function<void(const Part& part, std::span<std::byte> out)>;

/// Parts lie one after the other without gaps. Sets the checksum of each.
void write_parts(AtomicFile& file, std::span<Part> parts, const WriteAfter& write_after,
                 const Progress& progress);

/// After a copy: Errc::file_changed when a source is not as it was when it was opened.
void check_sources(std::span<const Part> parts);

}  // namespace ballast::containers
