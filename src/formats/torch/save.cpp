// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "ballast/torch.h"
#include "formats/torch/pickle_writer.h"
#include "formats/torch/writers.h"

namespace ballast::torch {
namespace {

void write(const std::string& path, std::string pickle, const StorageTable& storages,
           const SaveOptions& options) {
  AtomicFile file(path, options.overwrite);
  if (options.legacy)
    write_legacy(file, pickle, storages.records(), options.progress);
  else
    write_zip(file, std::move(pickle), storages.records(), options.progress);
  file.commit();
}

// What a view is, as text that can be looked up.
std::string view_key(const Tensor& tensor) {
  std::string key;
  const auto put = [&](std::uint64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(reinterpret_cast<std::uintptr_t>(tensor.storage().get()));
  put(tensor.bit_offset());
  put(static_cast<std::uint64_t>(tensor.dtype()));
  for (const std::int64_t dim : tensor.shape()) put(static_cast<std::uint64_t>(dim));
  for (const std::int64_t stride : tensor.strides()) put(static_cast<std::uint64_t>(stride));
  return key;
}

// A tree tells the truth about a checkpoint as long as the checkpoint's tensors are views the tree holds too;
// steps that cast or replace tensors leave a tree behind that is about other data.
bool is_current(const Checkpoint& checkpoint) {
  std::unordered_set<std::string> held;
  ValueWalk walk(*checkpoint.tree);
  while (const auto step = walk.next()) {
    if (step->value.kind() == Kind::tensor) held.insert(view_key(step->value.as_tensor()));
  }
  if (walk.cut()) return false;
  return std::all_of(checkpoint.begin(), checkpoint.end(),
                     [&](const Entry& entry) { return held.contains(view_key(entry.tensor())); });
}

}  // namespace

void save(const Value& root, const std::string& path, const SaveOptions& options) {
  StorageTable storages(options.extent);
  std::string pickle = pickle_tree(root, options, storages);
  write(path, std::move(pickle), storages, options);
}

void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  // A pickled model is an object of classes nobody else has; its state dict is what can be written.
  const bool is_data = checkpoint.tree && checkpoint.tree->kind() != Kind::object;
  if (is_data && is_current(checkpoint)) return save(*checkpoint.tree, path, options);
  StorageTable storages(options.extent == Extent::automatic ? Extent::used : options.extent);
  std::string pickle = pickle_tensors(checkpoint, options, storages);
  write(path, std::move(pickle), storages, options);
}

}  // namespace ballast::torch
