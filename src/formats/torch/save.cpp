// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ballast/error.h"
#include "ballast/torch.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "checkpoint/file_options.h"
#include "checkpoint/flatten.h"
#include "formats/one_reading.h"
#include "formats/torch/pickle_writer.h"
#include "formats/torch/writers.h"
#include "tensor/sound.h"

namespace ballast::torch {
namespace {

// numpy.load() takes a zip for an archive of arrays, and an entry that begins like an array for one, pickled
// objects in it included.
void require_no_arrays(const std::vector<StorageRecord>& records, const std::string& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  for (const StorageRecord& record : records) {
    if (record.size < kMagic.size()) continue;
    std::array<std::byte, kMagic.size()> head{};
    record.storage->read(record.offset, head);
    if (as_text(head) == kMagic)
      fail(Errc::not_representable, display(path),
           "a storage begins like a NumPy array and would be one to numpy.load(); nothing is written");
  }
}

void write(const std::string& path, std::string pickle, const StorageTable& storages,
           const SaveOptions& options) {
  AtomicFile file(path, options.overwrite);
  const bool is_legacy = options.format == formats::torch_legacy;
  if (!is_legacy) require_no_arrays(storages.records(), path);
  if (is_legacy)
    write_legacy(file, pickle, storages.records(), options.progress);
  else
    write_zip(file, std::move(pickle), storages.records(), options.progress);
  require_one_reading(file, is_legacy ? Meant::pickle : Meant::zip);
  ChangeCheck check_unchanged;
  for (const StorageRecord& record : storages.records()) check_unchanged(*record.storage);
  file.commit();
}

// A tree tells the truth about a checkpoint as long as it holds the very tensors of the checkpoint under
// their names; steps that rename, leave out, cast or replace tensors leave a tree behind that is about
// something else.
bool is_current(const Checkpoint& checkpoint) {
  Checkpoint held;
  flatten(*checkpoint.tree, held);
  if (held.size() != checkpoint.size()) return false;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Entry a = held[i];
    const Entry b = checkpoint[i];
    if (a.name != b.name || a.dtype != b.dtype ||
        !std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end()))
      return false;
    const Tensor mine = a.tensor();
    const Tensor given = b.tensor();
    if (mine.has_data() != given.has_data() || (mine.has_data() && !mine.same_view(given))) return false;
  }
  return true;
}

void require_torch(const SaveOptions& options) {
  constexpr const char* kWho = "torch::save()";
  require_known(options, kWho, {"format", "plain_dict", "simplify", "extent", "metadata"});
  if (options.format && options.format != formats::torch_zip && options.format != formats::torch_legacy)
    fail(Errc::invalid_argument, kWho, "{} is no format it writes", options.format.name());
}

void save_tree(const Value& root, const std::string& path, const SaveOptions& options) {
  StorageTable storages(options.extent);
  std::string pickle = pickle_tree(root, options, storages);
  write(path, std::move(pickle), storages, options);
}

}  // namespace

void save(const Value& root, const std::string& path, const SaveOptions& options) {
  require_torch(options);
  if (options.metadata)
    fail(Errc::invalid_argument, "torch::save()", "metadata is for plain tensors, and this is a tree");
  save_tree(root, path, options);
}

void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  require_torch(options);
  if (options.plain_dict && options.metadata)
    fail(Errc::invalid_argument, "torch::save()",
         "a plain dict has no place for metadata (nor for the layout, where that is not PyTorch's)");
  // A pickled model is an object of classes nobody else has; its state dict is what can be written.
  const bool is_data = checkpoint.tree && checkpoint.tree->kind() != Kind::object;
  if (is_data && is_current(checkpoint)) return save_tree(*checkpoint.tree, path, options);
  StorageTable storages(options.extent == Extent::automatic ? Extent::used : options.extent);
  std::string pickle = pickle_tensors(checkpoint, options, storages);
  write(path, std::move(pickle), storages, options);
}

}  // namespace ballast::torch
