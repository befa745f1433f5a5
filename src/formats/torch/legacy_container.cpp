// SPDX-License-Identifier: Apache-2.0
// The stream PyTorch wrote before 1.6:
//   1. pickle of the magic number   2. pickle of 1001, the protocol's version   3. pickle of the machine's
//   type sizes
//   4. pickle of the object         5. pickle of the list of storage keys, sorted as text
//   6. for each key of that list: number of elements (int64), then the elements, little-endian
#include <algorithm>
#include <cstring>

#include "containers/part_writer.h"
#include "formats/torch/legacy.h"
#include "formats/torch/pickle_emitter.h"
#include "formats/torch/writers.h"

namespace ballast::torch {
namespace {

std::string pickle_magic() {
  PickleEmitter emitter;
  static_cast<void>(emitter.big_integer(kLegacyMagic));  // 80 bits
  return std::move(emitter).finish();
}

std::string pickle_version() {
  PickleEmitter emitter;
  emitter.integer(kLegacyVersion);
  return std::move(emitter).finish();
}

std::string pickle_system() {
  PickleEmitter emitter;
  emitter.empty_dict();
  emitter.mark();
  emitter.string("protocol_version");
  emitter.integer(kLegacyVersion);
  emitter.string("little_endian");
  emitter.boolean(true);
  emitter.string("type_sizes");
  emitter.empty_dict();
  emitter.mark();
  emitter.string("short");
  emitter.integer(2);
  emitter.string("int");
  emitter.integer(4);
  emitter.string("long");
  emitter.integer(4);  // what PyTorch says on every machine
  emitter.set_items();
  emitter.set_items();
  return std::move(emitter).finish();
}

std::string pickle_keys(const std::vector<std::size_t>& order) {
  PickleEmitter emitter;
  emitter.empty_list();
  emitter.mark();
  for (const std::size_t key : order) emitter.string(std::to_string(key));
  emitter.appends();
  return std::move(emitter).finish();
}

std::vector<std::size_t> sorted_as_text(std::size_t count) {
  std::vector<std::pair<std::string, std::size_t>> keys;
  for (std::size_t i = 0; i < count; ++i) keys.emplace_back(std::to_string(i), i);
  std::sort(keys.begin(), keys.end());
  std::vector<std::size_t> order;
  for (const auto& [text, key] : keys) order.push_back(key);
  return order;
}

}  // namespace

void write_legacy(AtomicFile& file, const std::string& pickle, const std::vector<StorageRecord>& storages,
                  const Progress& progress) {
  const std::vector<std::size_t> order = sorted_as_text(storages.size());
  const std::string head = pickle_magic() + pickle_version() + pickle_system() + pickle + pickle_keys(order);
  std::vector<containers::Part> parts;
  parts.reserve(order.size() + 1);
  parts.push_back(
      {.storage = Storage::borrow(static_cast<const void*>(head.data()), head.size()), .size = head.size()});
  for (const std::size_t key : order) {
    const StorageRecord& storage = storages[key];
    containers::Part part{.at = parts.back().end(),
                          .before = std::string(8, '\0'),
                          .storage = storage.storage,
                          .offset = storage.offset,
                          .size = storage.size};
    std::memcpy(part.before.data(), &storage.numel, sizeof storage.numel);
    parts.push_back(std::move(part));
  }
  file.reserve(parts.back().end());
  containers::write_parts(file, parts, {}, progress);
}

}  // namespace ballast::torch
