// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle. Beyond not crashing: what is read can be walked and printed, and reading it inertly
// refuses no more than reading it strictly. Persistent ids give storages, so that every tensor rebuild is
// reachable.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "ballast/error.h"
#include "formats/torch/reader.h"

namespace {

using namespace ballast;
using namespace ballast::torch;

// Storages of any size the pickle asks for, up to a few bytes.
Ref storage_of(Objects& objects, Ref id) {
  const StorageId storage = parse_storage_id(objects, id);
  if (storage.bytes > 4096) objects.refuse(Errc::truncated, "a storage of {} bytes", storage.bytes);
  const StorageInfo info{.dtype = storage.dtype,
                         .location = storage.location,
                         .numel = storage.numel,
                         .offset = 0,
                         .index = static_cast<std::uint32_t>(objects.tree().storages.size()),
                         .big_endian = storage.key == "big"};
  objects.tree().storages.push_back(Storage::heap(storage.bytes, true));
  return objects.storage(info, storage.type);
}

void look_at(const Value& root) {
  ValueWalk walk(root, {.steps = 2000, .depth = 100});
  std::size_t text = 0;
  while (const auto step = walk.next()) {
    text += step->label.size() + step->value.summary().size();
    if (step->value.kind() != Kind::tensor) continue;
    const Tensor tensor = step->value.as_tensor();
    if (!tensor.has_data() || tensor.size_bytes() > 65536) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
    try {
      tensor.read(0, bytes);
    } catch (const Error&) {
      text += 1;  // sparse parts that do not fit
    }
  }
  if (text == SIZE_MAX) std::abort();
}

bool run(std::span<const std::byte> code, bool inert) {
  const auto copy = Storage::heap(code.size());
  if (!code.empty()) std::memcpy(copy->mutable_data(), code.data(), code.size());
  Objects objects(std::make_shared<ValueTree>(),
                  {.inert = inert, .report = nullptr, .input_bytes = code.size()});
  int depth = 0;
  objects.load_stream = [&](const std::shared_ptr<const Storage>& bytes, const std::string& where) {
    if (++depth > 4) fail(Errc::too_deep, where, "streams inside streams");
    std::size_t used = 0;
    return run_pickle(objects, bytes, 0,
                      {.where = where,
                       .entry = {},
                       .base = 0,
                       .persistent = [&](Ref id) { return storage_of(objects, id); }},
                      used);
  };
  try {
    std::size_t used = 0;
    const Ref root = run_pickle(objects, copy, 0,
                                {.where = "fuzz",
                                 .entry = {},
                                 .base = 0,
                                 .persistent = [&](Ref id) { return storage_of(objects, id); }},
                                used);
    objects.finish();
    const Value value = ValueTree::value(objects.shared_tree(), root);
    look_at(value);
    Checkpoint checkpoint;
    checkpoint.tree = value;
    flatten(value, nullptr, checkpoint);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> code(reinterpret_cast<const std::byte*>(data), size);
  if (run(code, false) && size % 16 == 0 && !run(code, true)) std::abort();
  static_cast<void>(pickle_length(code));
  return 0;
}
