// SPDX-License-Identifier: Apache-2.0
// adapt(): layers are told by their tensors, brought into the native layout by one world's table, and written
// by the other's: the tables that load() and save() use for models.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "base/fail.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "model/adapter.h"
#include "model/save.h"
#include "model/tell_layers.h"

namespace ballast {
namespace {

constexpr std::size_t kMostListed = 20;

std::string list(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : std::string(between)) + items[i];
  if (items.size() > kMostListed) text += fmt::format("{}… ({} in all)", between, items.size());
  return text;
}

// A layer of a state dict as the slots of a model that nobody wrote.
class AsSlots {
 public:
  using Fields = std::map<std::string, std::size_t>;  // and where the tensors stand in the state dict

  AsSlots(const Checkpoint& in, const World& from, const ToldLayer& layer, Fields fields)
      : in_(in), layer_(layer), fields_(std::move(fields)) {
    for (const AdapterRow& row : from.table()) {
      if (row.kind != layer.kind) continue;
      std::vector<std::string> stars;
      for (const auto& [field, at] : fields_) {
        if (const auto star = match_star(row.foreign[0], field)) stars.emplace_back(*star);
      }
      for (const std::string& star : stars) add_row(row, star);
    }
    for (const auto& [field, at] : fields_) add(field, in_[at].tensor(), std::string(in_[at].name));
  }

  Slots slots;

  [[nodiscard]] const std::string& origin_of(const Slot* slot) const {
    return origins_[static_cast<std::size_t>(slot - slots.slots.data())];
  }

 private:
  void add(const std::string& field, Tensor tensor, std::string origin) {
    tensors_.push_back(std::move(tensor));
    Slot slot;
    slot.path = layer_.path.empty() ? field : layer_.path + "." + field;
    slot.kind = layer_.kind;
    slot.layer_size = static_cast<std::uint32_t>(layer_.path.size());
    slot.tensor = &tensors_.back();
    slots.slots.push_back(std::move(slot));
    origins_.push_back(std::move(origin));
  }

  // When the file has all of the row.
  void add_row(const AdapterRow& row, const std::string& star) {
    Tensors foreign;
    std::vector<std::string> names;
    std::string origin;
    for (std::size_t i = 0; i < AdapterRow::count(row.foreign); ++i) {
      names.push_back(fill_star(row.foreign[i], star));
      const auto found = fields_.find(names.back());
      if (found == fields_.end()) return;
      foreign.push_back(in_[found->second].tensor());
      origin += (i == 0 ? "" : " + ") + std::string(in_[found->second].name);
    }
    const Tensors native = row.from(foreign);
    for (std::size_t i = 0; i < native.size(); ++i) add(fill_star(row.native[i], star), native[i], origin);
    for (const std::string& used : names) fields_.erase(used);
  }

  const Checkpoint& in_;
  const ToldLayer& layer_;
  Fields fields_;
  std::deque<Tensor> tensors_;
  std::vector<std::string> origins_;
};

class Adaption {
 public:
  Adaption(const Checkpoint& in, const AdaptOptions& options) : in_(in), options_(options) {}

  Adapted run() {
    if (is_quantized(in_))
      fail(Errc::unsupported, display(in_.path),
           "quantized tensors keep their layout: dequantize them first");
    Adapted done;
    const layout::Found found = options_.from == Adapter::automatic ? layout::find(in_) : layout::Found{};
    if (!found.note.empty()) done.notes.push_back(found.note);
    const World& from =
        options_.from == Adapter::automatic ? world_of(found.layout, in_) : world_of(options_.from);
    const World& to = options_.to == Adapter::automatic ? from : world_of(options_.to);
    if (options_.like != nullptr && options_.like->format && layout::of(*options_.like) != to.layout)
      fail(Errc::invalid_argument, display(options_.like->path),
           "has the layout {}: what tensors shall become is told by a file that has {}",
           layout::of(*options_.like), to.layout);
    if (&from == &to) {
      done.checkpoint = in_;
      for (const Entry& entry : in_) done.origins.emplace_back(entry.name);
    } else {
      require_known(from);
      require_known(to);
      change(from, to, done);
    }
    if (&from != &to || options_.from != Adapter::automatic) layout::set(done.checkpoint, to.layout);
    if (options_.like != nullptr) compare(done);
    return done;
  }

 private:
  void require_known(const World& world) const {
    if (world.plain_key != nullptr)
      fail(Errc::unsupported, display(in_.path),
           "without a model the layout of {} cannot be changed: load it into one and save that", world.name);
  }

  void change(const World& from, const World& to, Adapted& done) {
    const ToldLayers told = tell_layers(in_, from.adapter, options_);
    settle(told, from, to, done);
    done.unmatched = told.unmatched;
    std::vector<AsSlots::Fields> fields(told.layers.size());
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const std::size_t layer = told.layer_of[i];
      if (layer == ToldLayers::kNone) continue;
      const std::size_t before = told.layers[layer].path.size();
      fields[layer].emplace(in_[i].name.substr(before == 0 ? 0 : before + 1), i);
    }
    done.checkpoint = without_tensors(in_);
    done.checkpoint.tree.reset();
    record::forget_checksums(done.checkpoint);
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const std::size_t layer = told.layer_of[i];
      if (layer == ToldLayers::kNone)
        add(done, in_[i], std::string(in_[i].name));
      else if (!fields[layer].empty())  // its first tensor: the others follow it
        left_out += add_layer(done, {in_, from, told.layers[layer], std::exchange(fields[layer], {})}, to);
    }
    done.notes.push_back(
        fmt::format("the layout was {} and is {}: {}", from.layout, to.layout, changes(told, left_out, to)));
  }

  static void add(Adapted& done, const Entry& entry, std::string origin) {
    done.checkpoint.add(entry.name, entry.tensor());
    done.origins.push_back(std::move(origin));
  }

  // Returns how many of its tensors the other world has no place for.
  static std::size_t add_layer(Adapted& done, const AsSlots& layer, const World& to) {
    std::vector<const Slot*> made_of;
    const Checkpoint out = save_and_name(layer.slots, to.adapter, made_of);
    for (std::size_t i = 0; i < out.size(); ++i) add(done, out[i], layer.origin_of(made_of[i]));
    return static_cast<std::size_t>(std::ranges::count_if(layer.slots.slots, [&](const Slot& slot) {
      return to.lacks != nullptr && to.lacks(slot.kind, slot.field());
    }));
  }

  // "3 linear, 1 batch_norm; 1 tensor left out (num_batches_tracked)"
  static std::string changes(const ToldLayers& told, std::size_t left_out, const World& to) {
    std::map<std::string_view, std::size_t> kinds;
    for (const ToldLayer& layer : told.layers) ++kinds[name(layer.kind)];
    std::string text;
    for (const auto& [kind, count] : kinds)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
    if (text.empty()) text = "no layer that differs";
    if (left_out > 0) text += fmt::format("; {} that {} has no place for left out", left_out, to.name);
    return text;
  }

  // What cannot be told, or cannot be had, stops the work.
  void settle(const ToldLayers& told, const World& from, const World& to, Adapted& done) const {
    std::vector<std::string> open = told.undecided;
    if (to.adapter == Adapter::burn) {
      for (std::size_t i = 0; i < in_.size(); ++i) {
        if (told.layer_of[i] != ToldLayers::kNone && !burn_has(told.layers[told.layer_of[i]], in_[i].name))
          open.push_back(fmt::format("{} {}: Burn's recurrent layers have one layer and one direction",
                                     quoted(in_[i].name), to_string(in_[i].shape)));
      }
    }
    if (!open.empty() && options_.undecided == OnUndecided::error)
      fail(Errc::unsupported, display(in_.path),
           "{} of its tensors cannot be brought from the layout {} to {} without more being said (layers: "
           "what "
           "a layer is, PATH=linear, PATH=embedding, PATH=none; like: a file of the same model as it shall "
           "become; layout: {} to leave all as they are):\n  {}",
           open.size(), from.layout, to.layout, from.layout, list(open, "\n  "));
    if (!open.empty()) done.notes.push_back("left as they are: " + list(open, "; "));
    if (!told.by_name.empty()) done.notes.push_back("told by their names alone: " + list(told.by_name, ", "));
    if (!told.turned.empty())
      done.notes.push_back("lie [in, out] already, and stay so: " + list(told.turned, ", "));
  }

  static bool burn_has(const ToldLayer& layer, std::string_view name) {
    if (layer.kind == LayerKind::rnn) return false;
    if (layer.kind != LayerKind::lstm && layer.kind != LayerKind::gru) return true;
    const std::string_view field = name.substr(layer.path.empty() ? 0 : layer.path.size() + 1);
    return field == "weight_ih_l0" || field == "weight_hh_l0" || field == "bias_ih_l0" ||
           field == "bias_hh_l0";
  }

  void compare(Adapted& done) const {
    const Checkpoint& like = *options_.like;
    std::vector<std::string> others;
    std::size_t missing = 0;
    for (const Entry& entry : done.checkpoint) {
      const auto at = like.position(entry.name);
      if (!at)
        others.push_back(quoted(entry.name));
      else if (!std::ranges::equal(like[*at].shape, entry.shape))
        fail(Errc::shape_mismatch, display(in_.path), "{} became {}, and is {} in {}", quoted(entry.name),
             to_string(entry.shape), to_string(like[*at].shape), display(like.path));
    }
    for (const Entry& entry : like) missing += done.checkpoint.contains(entry.name) ? 0U : 1U;
    if (!others.empty() || missing > 0)
      done.notes.push_back(fmt::format("{} has {} tensors that are not here, and not {} that are{}{}",
                                       display(like.path), missing, others.size(), others.empty() ? "" : ": ",
                                       list(others, ", ")));
  }

  const Checkpoint& in_;
  const AdaptOptions& options_;
};

}  // namespace

Adapted adapt(const Checkpoint& in, const AdaptOptions& options) {
  return Adaption(marks::with_ties(in), options).run();
}

}  // namespace ballast
