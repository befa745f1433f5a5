// SPDX-License-Identifier: Apache-2.0
#include "model/prepare.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/fail.h"
#include "checkpoint/layout.h"
#include "checkpoint/pipeline.h"
#include "model/adapter.h"
#include "model/state_dict.h"

namespace ballast {
namespace {

// "layers.3.fc" → "layers.#.fc"
std::string with_any_position(std::string_view path) {
  std::string out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (begin > 0) out += '.';
    if (!segment.empty() && all_digits(segment))
      out += '#';
    else
      out += segment;
    begin = end + 1;
  }
  return out;
}

class Preparation {
 public:
  Preparation(const Slots& slots, const LoadOptions& options, LoadReport& report)
      : slots_(slots), options_(options), report_(report) {}

  Prepared run(const std::vector<Checkpoint>& state_dicts) {
    Pipeline pipeline(state_dicts.size() == 1 ? state_dicts.front() : merge(state_dicts));
    pipeline.change(options_.rename, options_.rules);
    if (options_.strip_prefixes && !has_member(slots_, "module.") && !has_member(slots_, "_orig_mod."))
      result_.stripped = pipeline.strip_prefixes();
    choose_adapter(pipeline);
    result_.wanted = pipeline.passing(options_.include, options_.exclude);
    result_.checkpoint = std::move(pipeline.checkpoint);
    result_.origins = std::move(pipeline.origins);
    const auto& notes = result_.checkpoint.notes;
    report_.notes.insert(report_.notes.end(), notes.begin(), notes.end());
    require_some_wanted();
    list_renamed();
    return std::move(result_);
  }

 private:
  void choose_adapter(Pipeline& pipeline) {
    const bool asked = options_.adapter != Adapter::automatic;
    const layout::Found found = asked ? layout::Found{} : layout::find(pipeline.checkpoint);
    const World& world = asked ? world_of(options_.adapter) : world_of(found.layout, pipeline.checkpoint);
    result_.adapter = world.adapter;
    if (!found.note.empty())
      report_.notes.push_back(found.note);
    else if (!asked && world.adapter != Adapter::pytorch)
      report_.notes.push_back("the file says that its layout is " + std::string(world.layout));
    if (world.plain_key != nullptr) pipeline.rename_each(world.plain_key);
  }

  void require_some_wanted() const {
    const bool any = std::find(result_.wanted.begin(), result_.wanted.end(), true) != result_.wanted.end();
    if (any || options_.include.empty()) return;
    fail(Errc::not_found, display(result_.checkpoint.path), "no key matches {}{}",
         quoted(options_.include.front()),
         options_.include.size() > 1 ? " or another of the patterns to include" : "");
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

bool has_member(const Slots& slots, std::string_view prefix) {
  return std::any_of(slots.slots.begin(), slots.slots.end(),
                     [&](const Slot& slot) { return slot.path.starts_with(prefix); }) ||
         std::any_of(slots.choices.begin(), slots.choices.end(),
                     [&](const Choice& choice) { return (choice.path + ".").starts_with(prefix); });
}

detail::FileHas file_has(const Prepared& source) {
  const auto known = std::make_shared<std::unordered_set<std::string>>();
  const auto add = [&](std::string_view name) {
    const std::string path = with_any_position(name);
    for (std::size_t end = path.size(); end != path.npos && end > 0; end = path.rfind('.', end - 1))
      if (!known->insert(path.substr(0, end)).second) break;
  };
  for (const Entry& entry : source.checkpoint) add(entry.name);
  if (source.checkpoint.metadata) {
    for (const auto& [name, other] : *source.checkpoint.metadata)  // second names of tied tensors
      if (source.checkpoint.contains(other)) add(name);
  }
  return [known](std::string_view path) {
    return path.empty() ? !known->empty() : known->contains(with_any_position(path));
  };
}

Prepared prepare(const Slots& slots, const std::vector<Checkpoint>& state_dicts, const LoadOptions& options,
                 LoadReport& report) {
  return Preparation(slots, options, report).run(state_dicts);
}

std::string debug_keys(const Checkpoint& before, const LoadOptions& options) {
  LoadReport unused;
  const Prepared prepared = prepare({}, {state_dict_of(before, options)}, options, unused);
  return debug_keys(prepared.checkpoint, prepared.origins);
}

}  // namespace ballast
