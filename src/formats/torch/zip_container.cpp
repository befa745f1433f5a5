// SPDX-License-Identifier: Apache-2.0
// torch.save's zip archive. `.format_version` 1 promises that the storages lie right behind one another, in
// the order of their first use, padded by the rule of ZipWriter: newer PyTorch finds them by arithmetic. The
// order of records is part of that promise.
#include <fmt/format.h>

#include "containers/zip_writer.h"
#include "formats/torch/writers.h"

namespace ballast::torch {
namespace {

// The name of the folder inside; PyTorch writes this one when it does not know the file's name. The same
// tensors give the same bytes everywhere.
constexpr std::string_view kFolder = "archive/";

containers::ZipRecord text_record(std::string_view name, std::string text) {
  const auto held = std::make_shared<std::string>(std::move(text));
  return {.name = std::string(kFolder) + std::string(name),
          .storage = Storage::borrow(static_cast<const void*>(held->data()), held->size(), [held] {}),
          .size = held->size()};
}

// 20 digits from the names, 20 from the checksums, as PyTorch's; only that they change with the content
// matters.
constexpr std::size_t kIdDigits = 40;

std::string serialization_id(std::span<const containers::Part> parts) {
  std::uint64_t layout = 0xCBF29CE484222325;  // FNV-1a
  std::uint64_t content = layout;
  const auto mix = [](std::uint64_t& hash, std::uint64_t value) { hash = (hash ^ value) * 0x100000001B3; };
  for (const containers::Part& part : parts) {
    mix(layout, part.content_at());
    mix(layout, part.size);
    mix(content, part.crc);
  }
  return fmt::format("{:020}{:020}", layout, content);
}

}  // namespace

void write_zip(AtomicFile& file, std::string pickle, const std::vector<StorageRecord>& storages,
               const Progress& progress) {
  std::vector<containers::ZipRecord> records;
  records.reserve(storages.size() + 6);
  records.push_back(text_record("data.pkl", std::move(pickle)));
  records.push_back(text_record(".format_version", "1"));
  records.push_back(text_record(".storage_alignment", fmt::format("{}", containers::ZipWriter::kAlignment)));
  records.push_back(text_record("byteorder", "little"));
  for (std::size_t key = 0; key < storages.size(); ++key) {
    const StorageRecord& storage = storages[key];
    records.push_back({.name = fmt::format("{}data/{}", kFolder, key),
                       .storage = storage.storage,
                       .offset = storage.offset,
                       .size = storage.size});
  }
  records.push_back(text_record("version", "3\n"));
  records.push_back({.name = std::string(kFolder) + ".data/serialization_id", .size = kIdDigits});
  containers::ZipWriter(std::move(records)).write(file, progress, serialization_id);
}

}  // namespace ballast::torch
