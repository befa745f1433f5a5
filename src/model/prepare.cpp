// SPDX-License-Identifier: Apache-2.0
#include "model/prepare.h"

#include <algorithm>
#include <map>

#include "ballast/display.h"
#include "ballast/root.h"
#include "base/fail.h"
#include "checkpoint/pattern.h"
#include "checkpoint/steps.h"

namespace ballast {

Adapter adapter_of(const Checkpoint& checkpoint) {
  const auto says = [&](const char* key, std::string_view value) {
    if (!checkpoint.metadata) return false;
    const auto found = checkpoint.metadata->find(key);
    return found != checkpoint.metadata->end() && found->second == value;
  };
  if (says("ballast.layout", "native")) return Adapter::none;
  for (const Adapter adapter : {Adapter::pytorch, Adapter::burn, Adapter::flax, Adapter::keras}) {
    if (says("ballast.layout", name(adapter))) return adapter;
  }
  if (checkpoint.format == "mpk" || checkpoint.format == "bpk" || says("producer", "burn"))
    return Adapter::burn;
  if (says("format", "flax")) return Adapter::flax;
  if (says("format", "tf") || says("format", "keras")) return Adapter::keras;
  return Adapter::pytorch;
}

namespace {

bool model_has_member(const Slots& slots, std::string_view prefix) {
  return std::any_of(slots.slots.begin(), slots.slots.end(),
                     [&](const Slot& slot) { return slot.path.starts_with(prefix); });
}

// Flax joins names with '/' or '.', and has collections; Keras ends variables with ":0".
std::string plain_key(std::string_view key) {
  std::string plain(key);
  std::replace(plain.begin(), plain.end(), '/', '.');
  if (plain.ends_with(":0")) plain.resize(plain.size() - 2);
  for (const std::string_view collection : {"params.", "batch_stats."}) {
    if (plain.size() > collection.size() && plain.starts_with(collection)) plain.erase(0, collection.size());
  }
  return plain;
}

class Preparation {
 public:
  Preparation(const Slots& slots, const Checkpoint& in, const LoadOptions& options, LoadReport& report)
      : slots_(slots), options_(options), report_(report) {
    result_.checkpoint = in;
  }

  Prepared run() {
    const std::size_t notes_before = result_.checkpoint.notes.size();
    find_state_dict();
    for (const Entry& entry : result_.checkpoint) result_.origins.emplace_back(entry.name);
    if (!options_.rename.empty()) result_.checkpoint = rename(result_.checkpoint, options_.rename).checkpoint;
    if (!options_.rules.empty()) apply_rules();
    if (options_.strip_prefixes && !model_has_member(slots_, "module.") &&
        !model_has_member(slots_, "_orig_mod.")) {
      result_.checkpoint = strip_common_prefixes(result_.checkpoint).checkpoint;
    }
    result_.adapter =
        options_.adapter == Adapter::automatic ? adapter_of(result_.checkpoint) : options_.adapter;
    if (result_.adapter == Adapter::flax || result_.adapter == Adapter::keras) make_keys_plain();
    if (options_.adapter == Adapter::automatic && result_.adapter != Adapter::pytorch) {
      report_.notes.push_back(
          "the file says that its layout is " +
          std::string(result_.adapter == Adapter::none ? "native" : name(result_.adapter)));
    }
    const auto& notes = result_.checkpoint.notes;
    report_.notes.insert(report_.notes.end(),
                         notes.begin() + static_cast<std::ptrdiff_t>(std::min(notes_before, notes.size())),
                         notes.end());
    filter_keys();
    list_renamed();
    return std::move(result_);
  }

 private:
  void find_state_dict() {
    if (!options_.root.empty()) return take(root(result_.checkpoint, options_.root));
    if (!result_.checkpoint.tree) return;
    FoundRoot found = find_root(result_.checkpoint);
    // A member of that name means the whole file is meant.
    if (found.path.empty() || model_has_member(slots_, found.path + ".")) return;
    take(std::move(found.checkpoint));
    report_.notes.push_back("the state dict was found at " + quoted(found.path));
  }

  // A part of the file; what is said of the whole file stays.
  void take(Checkpoint part) {
    part.path = std::move(result_.checkpoint.path);
    part.format = std::move(result_.checkpoint.format);
    part.metadata = std::move(result_.checkpoint.metadata);
    part.notes = std::move(result_.checkpoint.notes);
    result_.checkpoint = std::move(part);
  }

  void apply_rules() {
    rules::Applied applied = rules::apply(result_.checkpoint, options_.rules);
    // Origins are told in terms of the file, so those of the rename before are put in.
    std::map<std::string, std::string, std::less<>> earlier;
    for (std::size_t i = 0; i < result_.checkpoint.size(); ++i)
      earlier.emplace(result_.checkpoint[i].name, result_.origins[i]);
    for (std::string& origin : applied.origins) {
      std::string in_file;
      for (std::string_view rest = origin; !rest.empty();) {
        const std::string_view part = rest.substr(0, rest.find(" + "));
        const auto found = earlier.find(part);
        in_file +=
            (in_file.empty() ? "" : " + ") + (found == earlier.end() ? std::string(part) : found->second);
        rest.remove_prefix(std::min(rest.size(), part.size() + 3));
      }
      origin = std::move(in_file);
    }
    result_.checkpoint = std::move(applied.checkpoint);
    result_.origins = std::move(applied.origins);
  }

  void make_keys_plain() {
    std::vector<std::string> names;
    for (const Entry& entry : result_.checkpoint) names.push_back(plain_key(entry.name));
    result_.checkpoint = with_names(result_.checkpoint, names);
  }

  void filter_keys() {
    const KeyFilter filter(options_.include, options_.exclude);
    for (const Entry& entry : result_.checkpoint) result_.wanted.push_back(filter.passes(entry.name));
  }

  void list_renamed() {
    for (std::size_t i = 0; i < result_.checkpoint.size(); ++i) {
      const std::string_view now = result_.checkpoint[i].name;
      if (now != result_.origins[i]) report_.renamed.push_back({result_.origins[i], std::string(now)});
    }
  }

  const Slots& slots_;
  const LoadOptions& options_;
  LoadReport& report_;
  Prepared result_;
};

}  // namespace

Prepared prepare(const Slots& slots, const Checkpoint& in, const LoadOptions& options, LoadReport& report) {
  return Preparation(slots, in, options, report).run();
}

std::string debug_keys(const Checkpoint& before, const LoadOptions& options) {
  LoadReport unused;
  const Prepared prepared = prepare({}, before, options, unused);
  std::map<std::string_view, std::size_t> sorted;
  for (std::size_t i = 0; i < prepared.checkpoint.size(); ++i) sorted.emplace(prepared.checkpoint[i].name, i);
  std::string text = "Debug information of keys and tensor shapes:\n---\n";
  for (const auto& [key, i] : sorted) {
    if (key == prepared.origins[i])
      text += fmt::format("Key: {}\n", display(key));
    else
      text += fmt::format("Original Key: {}\nRemapped Key: {}\n", display(prepared.origins[i]), display(key));
    text += fmt::format("Shape: {}\nDtype: {}\n---\n", to_string(prepared.checkpoint[i].shape),
                        info(prepared.checkpoint[i].dtype).code);
  }
  return text;
}

}  // namespace ballast
