// SPDX-License-Identifier: Apache-2.0
#include "model/save.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ballast/error.h"
#include "ballast/load.h"
#include "base/fail.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/pattern.h"
#include "checkpoint/steps.h"
#include "model/adapter.h"
#include "model/convert.h"

namespace ballast {
namespace {

class Writer {
 public:
  Writer(const Slots& slots, Adapter adapter)
      : slots_(slots), adapter_(adapter == Adapter::automatic ? Adapter::pytorch : adapter) {
    for (std::size_t i = 0; i < slots.slots.size(); ++i) by_path_.emplace(slots.slots[i].path, i);
    saved_as.resize(slots.slots.size());
  }

  Checkpoint run() {
    for (std::size_t i = 0; i < slots_.slots.size(); ++i) {
      if (!written_.contains(i)) write(i);
    }
    layout::label(out_, world_of(adapter_).layout);
    marks::set_ties(out_, ties_);
    return std::move(out_);
  }

  std::vector<SavedAs> saved_as;  ///< of each slot

  /// One of those a tensor of the file was made of: they are of one layer.
  [[nodiscard]] const Slot& slot_of(std::string_view name) const { return *made_of_.at(std::string(name)); }

  /// And of its other names.
  [[nodiscard]] const Slot* find_slot_of(std::string_view name) const {
    const auto tie = tied_.find(std::string(name));
    return tie == tied_.end() ? &slot_of(name) : tie->second;
  }

 private:
  void write(std::size_t index) {
    const Slot& slot = slots_.slots[index];
    const World& world = world_of(adapter_);
    if (world.lacks != nullptr && world.lacks(slot.kind, slot.field())) return;
    for (const AdapterPath& path : paths_to(adapter_, slot.kind, slot.field())) {
      if (path.row == nullptr || !write_row(slot, *path.row)) continue;
      return;
    }
    written_.insert(index);
    saved_as[index] = {add(slot, slot.path, data_of(slot))};
  }

  // All native tensors of the row, when the layer has them and the row suits them.
  bool write_row(const Slot& slot, const AdapterRow& row) {
    std::string_view star;
    for (const std::string_view native : row.native) {
      if (const auto found = match_star(native, slot.field()); found && !native.empty()) star = *found;
    }
    Tensors native;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < AdapterRow::count(row.native); ++i) {
      const auto found = by_path_.find(path_in(slot, fill_star(row.native[i], star)));
      if (found == by_path_.end() || slots_.slots[found->second].kind != slot.kind ||
          written_.contains(found->second))
        return false;
      indices.push_back(found->second);
      native.push_back(data_of(slots_.slots[found->second]));
    }
    const Tensors foreign = row.to(native);
    if (foreign.empty()) return false;
    std::string name;
    for (std::size_t i = 0; i < foreign.size(); ++i)
      name = add(slot, path_in(slot, fill_star(row.foreign[i], star)), foreign[i]);
    // Rows to PyTorch have one foreign tensor, made of one native or of several equal parts.
    for (std::size_t i = 0; i < indices.size(); ++i)
      saved_as[indices[i]] = {name, row.to != as_is && native[i].rank() > 1, i, indices.size()};
    written_.insert(indices.begin(), indices.end());
    return true;
  }

  static std::string path_in(const Slot& slot, const std::string& field) {
    return slot.layer_size == 0 ? field : std::string(slot.layer()) + "." + field;
  }

  static const Tensor& data_of(const Slot& slot) {
    if (!slot.tensor->has_data())
      fail(Errc::invalid_argument, quoted(slot.path),
           "has no data to save (load or initialise the model first)");
    return *slot.tensor;
  }

  // Returns the name it has in the file: another one when it is there already.
  std::string add(const Slot& slot, const std::string& name, const Tensor& tensor) {
    for (const auto& [other, seen] : seen_[tensor.storage().get()]) {
      if (!seen.same_view(tensor)) continue;
      ties_.emplace(name, other);
      tied_.emplace(name, &slot);
      return other;
    }
    seen_[tensor.storage().get()].emplace_back(name, tensor);
    out_.add(name, tensor);
    made_of_.emplace(name, &slot);
    return name;
  }

  const Slots& slots_;
  Adapter adapter_;
  Checkpoint out_;
  marks::Ties ties_;
  std::unordered_map<std::string, const Slot*> tied_;
  std::set<std::size_t> written_;
  std::unordered_map<std::string, std::size_t> by_path_;
  std::unordered_map<std::string, const Slot*> made_of_;
  std::unordered_map<const Storage*, std::vector<std::pair<std::string, Tensor>>> seen_;
};

// By the names of the model and by those of the file. A pattern that matches neither would narrow in silence
// what was to be kept: a save has no report to say it in.
std::vector<bool> kept_wide(const Slots& slots, const ModelCast& cast, const Writer& writer,
                            const Checkpoint& out) {
  std::vector<std::string_view> names;
  for (const Slot& slot : slots.slots) names.emplace_back(slot.path);
  for (const Entry& entry : out) names.emplace_back(entry.name);
  if (const auto lost = unmatched(cast.keep_dtype, names); !lost.empty())
    fail(Errc::not_found, "keep_dtype", "the pattern {} matches no tensor of the model; the first is {}",
         quoted(lost.front()), names.empty() ? "none" : quoted(names.front()));
  const KeyFilter by_name(cast.keep_dtype, {});
  const KeptWide by_slot(slots, cast);
  std::vector<bool> kept;
  for (const Entry& entry : out)
    kept.push_back((!cast.keep_dtype.empty() && by_name.passes(entry.name)) ||
                   by_slot.has(writer.slot_of(entry.name)));
  return kept;
}

}  // namespace

Checkpoint detail::save(const Slots& slots, Adapter adapter, const ModelCast& cast) {
  std::vector<SavedAs> unasked;
  return save_and_tell(slots, adapter, cast, unasked);
}

Checkpoint save_and_name(const Slots& slots, Adapter adapter, std::vector<const Slot*>& made_of) {
  Writer writer(slots, adapter);
  Checkpoint out = marks::with_ties(writer.run());
  for (const Entry& entry : out) made_of.push_back(writer.find_slot_of(entry.name));
  return out;
}

Checkpoint save_and_tell(const Slots& slots, Adapter adapter, const ModelCast& cast,
                         std::vector<SavedAs>& saved_as) {
  Writer writer(slots, adapter);
  Checkpoint out = writer.run();
  saved_as = writer.saved_as;
  if (cast.dtype == Precision::keep) return out;
  if (cast.dtype == Precision::as_model)
    fail(Errc::invalid_argument, "save", "as_model means nothing here: the tensors are the model's");
  const DType dtype = target_dtype(cast.dtype);
  const std::vector<bool> kept = kept_wide(slots, cast, writer, out);
  return cast_where(
      out, dtype, [&](std::size_t i) { return !is_narrower(out[i].dtype, dtype) || !kept[i]; }, cast.count);
}

}  // namespace ballast
