// SPDX-License-Identifier: Apache-2.0
#include "ballast/load.h"

#include <algorithm>
#include <map>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/fail.h"
#include "checkpoint/pattern.h"
#include "checkpoint/steps.h"
#include "model/choose.h"
#include "model/convert.h"
#include "model/initialize.h"
#include "model/state_dict.h"
#include "model/suggest.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

class Loader {
 public:
  Loader(const detail::CollectSlots& collect, std::span<const Checkpoint> files, const LoadOptions& options)
      : slots_(collect({})),
        files_(files),
        options_(options),
        source_(prepare(slots_, state_dicts_of(files, slots_, collect, options), options, report_)),
        matcher_(follow_pointers(collect), source_, options),
        converter_(slots_, detail::model_cast(options)),
        used_(source_.checkpoint.size(), false),
        taken_(source_.checkpoint.size(), false) {
    report_.file = source_.checkpoint.path;
  }

  LoadReport run() {
    note_unmatched();
    if (options_.debug) report_.debug_keys = debug_keys(source_.checkpoint, source_.origins);
    const Chosen chosen = choose(slots_, matcher_, source_, options_.variants, report_);
    for (std::size_t i = 0; i < slots_.slots.size(); ++i) {
      if (chosen.slots[i]) place(i);
    }
    for (const std::size_t slot : unfound_) settle_missing(slot);
    for (const Positions::Moved& moved : matcher_.moved())
      report_.reindexed.push_back({moved.file, moved.model});
    list_unused();
    help_with_missing();
    report_.failed = (!report_.missing.empty() && options_.missing == OnMissing::error) ||
                     (!report_.mismatched.empty() && options_.mismatched == OnMismatch::error) ||
                     (!report_.unused.empty() && options_.unused == OnUnused::error);
    if (report_.failed) throw LoadError(std::move(report_));
    if (options_.verify) verify();
    commit(chosen);
    return std::move(report_);
  }

 private:
  // Of the steps that look at the model's names; those of the others are in the pipeline's notes.
  void note_unmatched() {
    std::vector<std::string_view> paths;
    std::vector<std::string_view> prefixes;
    for (const Slot& slot : slots_.slots) {
      paths.push_back(slot.path);
      for (const NumberedSegment& segment : numbered_segments(slot.path)) prefixes.push_back(segment.prefix);
    }
    const auto note = [&](std::string_view step, const std::vector<std::string>& patterns,
                          const std::vector<std::string_view>& names) {
      for (const std::string& text : unmatched(patterns, names))
        if (!text.empty())  // which is reindex' word for everywhere, and a model need not have vectors
          report_.notes.push_back(fmt::format("{} pattern {} matched no key", step, quoted(text)));
    };
    if (options_.dtype.dtype()) note("keep_dtype", options_.keep_dtype, paths);
    note("reindex", options_.reindex, prefixes);
    note("keep_positions", options_.keep_positions, prefixes);
  }

  // Only where the model has null pointers does the file decide how many slots there are.
  const Slots& follow_pointers(const detail::CollectSlots& collect) {
    const bool has_null = std::any_of(slots_.choices.begin(), slots_.choices.end(),
                                      [](const Choice& choice) { return choice.alternatives.empty(); });
    if (has_null) slots_ = collect(file_has(source_));
    return slots_;
  }

  [[nodiscard]] std::string origin(const Match& match) const {
    std::string text;
    for (const std::size_t source : match.sources)
      text += (text.empty() ? "" : " + ") + source_.origins[source];
    return text;
  }

  void place(std::size_t index) {
    const Slot& slot = slots_.slots[index];
    const Match& match = matcher_.match(index);
    if (!match.found()) {
      unfound_.push_back(index);
      return;
    }
    for (const std::size_t source : match.sources) used_[source] = true;
    if (match.filtered) {
      report_.skipped.push_back({origin(match), slot.path});
      return;
    }
    if (!match.problem.empty()) {
      report_.mismatched.push_back(
          {origin(match), slot.path, match.file_shape, match.model_shape, match.problem});
      return;
    }
    for (const std::size_t source : match.sources) taken_[source] = true;
    const Converter::Result result = converter_.convert(match.tensor, slot);
    report_.applied.push_back({origin(match), slot.path});
    if (!match.adapted.empty()) report_.adapted.push_back({origin(match), slot.path, match.adapted});
    if (result.tensor.dtype() != match.tensor.dtype()) note_cast(slot, match, result);
    stage(slot, result.tensor);
  }

  void note_cast(const Slot& slot, const Match& match, const Converter::Result& result) {
    std::string detail =
        fmt::format("{} → {}", info(match.tensor.dtype()).code, info(result.tensor.dtype()).code);
    if (result.loss.rounded > 0) detail += fmt::format(", {} values rounded", result.loss.rounded);
    if (result.loss.overflowed > 0)
      detail += fmt::format(", {} values became infinite", result.loss.overflowed);
    report_.rounded += result.loss.rounded;
    report_.overflowed += result.loss.overflowed;
    report_.cast.push_back({origin(match), slot.path, detail});
  }

  void stage(const Slot& slot, Tensor tensor) {
    if (staged_.contains(slot.tensor)) return;  // one tensor under two paths: the first one's source counts
    staged_.emplace(slot.tensor, std::move(tensor));
  }

  // After all others, because a tensor shared by two members may have come under the other's name.
  void settle_missing(std::size_t index) {
    const Slot& slot = slots_.slots[index];
    const Match& match = matcher_.match(index);
    if (staged_.contains(slot.tensor)) return;
    if (is_optional(slot))
      return stage(slot, slot.tensor->has_data() ? *slot.tensor
                                                 : Tensor::zeros(slot.tensor->dtype(), slot.tensor->shape()));
    if (!filter_passes(match.wanted)) {
      report_.skipped.push_back({match.wanted, slot.path, "not in the file"});
      return;
    }
    if (options_.missing == OnMissing::init) {
      stage(slot, initial_value(slot, slots_, 0));
      report_.initialized.push_back({"", slot.path});
      return;
    }
    report_.missing.push_back({match.wanted, slot.path});
    missing_.push_back(index);
  }

  [[nodiscard]] bool filter_passes(const std::string& key) {
    if (!filter_) filter_.emplace(options_.include, options_.exclude);
    return filter_->passes(key);
  }

  void list_unused() {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (used_[i] || !source_.wanted[i]) continue;
      const Entry entry = source_.checkpoint[i];
      report_.unused.push_back(
          {source_.origins[i], "", fmt::format("{} {}", info(entry.dtype).code, to_string(entry.shape))});
      unused_.push_back({std::string(entry.name), {entry.shape.begin(), entry.shape.end()}});
    }
  }

  [[nodiscard]] NamedShape wanted_shape(std::size_t index) {
    NamedShape wanted{matcher_.match(index).wanted, {}, true};
    if (const auto shape = foreign_shape(source_.adapter, slots_.slots[index])) {
      wanted.shape.assign(shape->begin(), shape->end());
      wanted.any_shape = false;
    }
    return wanted;
  }

  void help_with_missing() {
    if (missing_.empty() || unused_.empty()) return;
    list_other_roots();
    std::vector<NamedShape> wanted;
    for (const std::size_t index : missing_) wanted.push_back(wanted_shape(index));
    std::vector<std::string_view> names;
    for (const NamedShape& key : unused_) names.push_back(key.key);
    for (std::size_t i = 0; i < report_.missing.size() && i < kMostHelped; ++i)
      report_.missing[i].detail = did_you_mean(report_.missing[i].source, names);
    report_.suggestions = suggest_renames(wanted, unused_, source_.stripped);
  }

  // The whole file was taken, and parts of it look like state dicts themselves.
  void list_other_roots() {
    if (options_.root) return;
    for (const Checkpoint& file : files_) {
      const auto candidates = root_candidates(file);
      if (candidates.size() > 1)
        report_.notes.push_back("state dicts are at " + to_string(candidates) + "; `root` takes one of them");
    }
  }

  void verify() const {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) check_sound(source_.checkpoint[i].tensor(), source_.origins[i]);
    }
  }

  // Nothing here fails but for want of memory, before anything is moved: the new alternatives are built, the
  // tensors are made. Inner alternatives go into outer ones before those move.
  void commit(const Chosen& chosen) {
    slots_.name_layers();
    for (auto& [target, tensor] : staged_) *target = std::move(tensor);
    std::for_each(chosen.committed.rbegin(), chosen.committed.rend(), [&](std::uint32_t alternative) {
      if (const auto& move_in = slots_.alternatives[alternative].commit) move_in();
    });
  }

  static constexpr std::size_t kMostHelped = 200;

  Slots slots_;
  std::span<const Checkpoint> files_;
  const LoadOptions& options_;
  LoadReport report_;
  Prepared source_;
  Matcher matcher_;
  Converter converter_;
  std::optional<KeyFilter> filter_;
  std::vector<bool> used_;   // of the file's tensors: those a slot asks for
  std::vector<bool> taken_;  // and gets
  std::map<Tensor*, Tensor> staged_;
  std::vector<std::size_t> unfound_;
  std::vector<std::size_t> missing_;
  std::vector<NamedShape> unused_;
};

}  // namespace

LoadReport detail::load(const CollectSlots& collect, std::span<const Checkpoint> files,
                        const LoadOptions& options) {
  if (files.empty()) fail(Errc::invalid_argument, "load", "no checkpoint to load from");
  return Loader(collect, files, options).run();
}

}  // namespace ballast
