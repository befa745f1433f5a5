// SPDX-License-Identifier: Apache-2.0
// Zip archives, written exactly as PyTorch writes them: records stored, their sizes and checksums in a
// descriptor behind the data, content aligned to 64 bytes by an "FB" field in the local header, zip64 end
// records always. Newer PyTorch computes the places of storages by this very layout instead of reading
// headers, so every byte of padding matters (docs/formats/pytorch-writing.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "containers/part_writer.h"

namespace ballast::containers {

struct ZipRecord {
  std::string name;  ///< with its folder
  std::shared_ptr<const Storage> storage = {};
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

class ZipWriter {
 public:
  static constexpr std::uint64_t kAlignment = 64;

  /// Settles where everything goes. Errc::invalid_argument for a name of more than 65535 bytes.
  explicit ZipWriter(std::vector<ZipRecord> records);

  [[nodiscard]] std::uint64_t file_size() const noexcept { return size_; }

  /// Where the content of a record begins.
  [[nodiscard]] std::uint64_t content_at(std::size_t record) const noexcept {
    return parts_[record].content_at();
  }

  /// Writes the whole archive. `last`, when given, makes the last record's content (of the size it was
  /// declared with) from the checksums of the others.
  void write(AtomicFile& file, const Progress& progress,
             const std::function<std::string(std::span<const Part>)>& last = {});

 private:
  [[nodiscard]] std::string local_header(const ZipRecord& record, std::uint64_t at) const;
  [[nodiscard]] std::string directory() const;

  std::vector<std::string> names_;
  std::vector<Part> parts_;
  std::uint64_t directory_at_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace ballast::containers
