// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "ballast/config.h"
#include "ballast/convert.h"
#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "formats/encrypted.h"
#include "formats/shards/shards.h"
#include "import/receipt.h"

namespace ballast {
namespace {

// The file, or a shard of an index: each has metadata of its own.
struct MetadataPart {
  std::string path;
  Checkpoint bare;  // as it stands there: ties are metadata, not tensors

  [[nodiscard]] Metadata metadata() const { return bare.metadata.value_or(Metadata()); }
};

MetadataPart part_of(const std::string& path, Format format) {
  const OpenedFile opened = open_content(path, {.io = Io::read});
  if (opened.content != opened.file)
    fail(Errc::unsupported, display(path), "is encrypted, and is not changed in place");
  if (!format->holds_metadata)
    fail(Errc::unsupported, display(path),
         "is {}; metadata can be changed in Safetensors files only (ballast convert makes one)",
         format.name());
  return {path, safetensors::open(path, {.io = Io::read})};
}

std::vector<MetadataPart> parts_of(const Checkpoint& checkpoint) {
  std::vector<MetadataPart> parts;
  if (checkpoint.format != formats::sharded) {
    parts.push_back(part_of(checkpoint.path, checkpoint.format));
    return parts;
  }
  for (const std::string& path : shards::locate_all(checkpoint.path, shards::read_index(checkpoint.path)))
    parts.push_back(part_of(path, open(path, {.io = Io::read}).format));
  return parts;
}

Metadata edited(const MetadataEdit& change, Metadata metadata) {
  for (const std::string& key : change.remove) metadata.erase(key);
  for (const auto& [key, value] : change.set) metadata[key] = value;
  return metadata;
}

void require_there(const std::string& in, const MetadataEdit& change,
                   const std::vector<MetadataPart>& parts) {
  for (const std::string& key : change.remove) {
    const bool is_there = std::any_of(
        parts.begin(), parts.end(), [&](const MetadataPart& part) { return part.metadata().contains(key); });
    if (!is_there) fail(Errc::not_found, display(in), "no metadata {}", quoted(key));
  }
}

// Keys by which tensors are what they are: tied, quantized, in some layout.
void require_harmless(const std::string& in, const std::string& key, const Checkpoint& checkpoint,
                      const std::vector<MetadataPart>& parts) {
  const bool is_tensor = std::any_of(parts.begin(), parts.end(),
                                     [&](const MetadataPart& part) { return part.bare.contains(key); });
  const bool is_tie = checkpoint.contains(key) && !is_tensor;
  if (!is_tie && !key.starts_with("ballast.")) return;
  fail(Errc::invalid_argument, display(in), "{} says {}; -f changes it all the same", quoted(key),
       is_tie ? "that a tensor has a second name" : "what its tensors are to Ballast");
}

void copy_file(const std::string& in, const std::string& out, bool overwrite) {
  const auto source = File::open(in);
  AtomicFile target(out, overwrite);
  target.copy_at(0, *source, 0, source->size());
  source->check_unchanged();
  target.commit();
}

class MetadataWork {
 public:
  MetadataWork(const std::string& in, const std::string& out, const MetadataEdit& change)
      : in_(in), out_(out), change_(change), opened_(open(in, {.io = Io::read})), parts_(parts_of(opened_)) {}

  EditedMetadata run() {
    require_there(in_, change_, parts_);
    for (const auto& entry : change_.set) require_key(entry.first);
    for (const std::string& key : change_.remove) require_key(key);
    done_.file = place_results();
    Receipt::Side input;
    if (!change_.receipt.empty()) input = receipt_side(opened_);
    done_.in_place = out_.empty();
    for (std::size_t i = 0; i < parts_.size(); ++i) write(parts_[i], targets_[i]);
    if (opened_.format == formats::sharded && !out_.empty())
      copy_file(opened_.path, done_.file, change_.overwrite);
    if (!change_.receipt.empty())
      save_config(make_receipt("meta", std::move(input), steps(), done_.file), change_.receipt,
                  {.overwrite = change_.overwrite});
    if (folder_) folder_->keep();
    return std::move(done_);
  }

 private:
  void require_key(const std::string& key) const {
    if (key.empty()) fail(Errc::invalid_argument, display(in_), "a metadata key cannot be empty");
    if (!change_.marks) require_harmless(in_, key, opened_, parts_);
  }

  // Where the parts go; returns the file, or the index, that leads to them.
  std::string place_results() {
    const bool is_sharded = opened_.format == formats::sharded;
    std::string folder = out_;
    if (is_sharded && !out_.empty() && !shards::is_folder(out_) && !out_.ends_with('/'))
      fail(Errc::invalid_argument, display(out_),
           "is no folder, which a copy of shards needs (\"{}/\" makes one)", display(out_));
    if (is_sharded && !out_.empty() && !folder.ends_with('/')) folder += '/';
    std::string result = out_.empty() ? opened_.path : out_;
    if (is_sharded && !out_.empty()) {
      if (!shards::is_folder(folder)) folder_.emplace(folder);
      result = folder + base_name(opened_.path);
    }
    for (const MetadataPart& part : parts_)
      targets_.push_back(out_.empty() ? part.path : is_sharded ? folder + base_name(part.path) : out_);
    std::vector<std::string> outputs;
    if (!out_.empty()) outputs = targets_;
    if (is_sharded && !out_.empty()) outputs.push_back(result);
    if (!change_.receipt.empty()) outputs.push_back(change_.receipt);
    require_apart({in_}, outputs);
    require_receipt(change_.receipt, change_.overwrite, {});
    return result;
  }

  // Shards one after the other, and those that say it already not at all: what an interruption leaves is
  // finished by the same call.
  void write(const MetadataPart& part, const std::string& target) {
    Metadata now = edited(change_, part.metadata());
    const bool is_said = parts_.size() > 1 && now == part.metadata();
    done_.metadata.insert(now.begin(), now.end());
    if (is_said && out_.empty()) return;
    done_.files.push_back(target);
    if (is_said) return copy_file(part.path, target, change_.overwrite);
    safetensors::HeaderEdit edit{.metadata = std::move(now), .replaces = part.metadata()};
    edit.spare = true;
    const bool in_place =
        safetensors::edit(part.path, target, edit,
                          {.overwrite = out_.empty() || change_.overwrite, .progress = change_.progress});
    done_.in_place = done_.in_place && in_place;
  }

  [[nodiscard]] Receipt::Steps steps() const {
    Receipt::Steps steps;
    if (!change_.set.empty()) steps.meta = change_.set;
    if (!change_.remove.empty()) steps.removed = change_.remove;
    return steps;
  }

  const std::string& in_;
  const std::string& out_;
  const MetadataEdit& change_;
  const Checkpoint opened_;
  const std::vector<MetadataPart> parts_;
  std::optional<NewFolder> folder_;   // goes again when nothing comes into it
  std::vector<std::string> targets_;  // of the parts
  EditedMetadata done_;
};

}  // namespace

EditedMetadata edit_metadata(const std::string& in, const std::string& out, const MetadataEdit& change) {
  if (change.set.empty() && change.remove.empty())
    fail(Errc::invalid_argument, display(in), "no key is to be set or removed");
  return MetadataWork(in, out, change).run();
}

}  // namespace ballast
