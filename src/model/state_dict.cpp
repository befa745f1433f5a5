// SPDX-License-Identifier: Apache-2.0
#include "model/state_dict.h"

#include <algorithm>
#include <exception>
#include <set>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "base/fail.h"
#include "checkpoint/pattern.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/root_choice.h"
#include "model/choose.h"

namespace ballast {
namespace {

constexpr std::size_t kMostTried = 20;

// How many of the model's tensors a state dict has.
struct RootFit {
  std::size_t found = 0;
  std::size_t wanted = 0;

  [[nodiscard]] bool complete() const noexcept { return found > 0 && found == wanted; }
};

RootFit fit_of(const Slots& slots, const Prepared& source, const LoadOptions& options) {
  LoadReport undecided;
  Matcher matcher(slots, source, options);
  const Chosen chosen = choose(slots, matcher, source, options.variants, undecided);
  const KeyFilter filter(options.include, options.exclude);
  std::set<const Tensor*> found;
  std::set<const Tensor*> wanted;  // a tensor shared by two members may come under either name
  for (std::size_t i = 0; i < slots.slots.size(); ++i) {
    const Match& match = matcher.match(i);
    if (!chosen.slots[i] || match.filtered || !filter.passes(match.wanted)) continue;
    if (!match.found() && is_optional(slots.slots[i])) continue;
    wanted.insert(slots.slots[i].tensor);
    if (match.found() && match.problem.empty()) found.insert(slots.slots[i].tensor);
  }
  return {found.size(), wanted.size() + undecided.mismatched.size()};
}

class StateDicts {
 public:
  StateDicts(const Slots& names, const detail::CollectSlots& collect, const LoadOptions& options)
      : names_(names), collect_(collect), options_(options) {}

  [[nodiscard]] Checkpoint of(const Checkpoint& file) {
    const RootChoice choice = root_choice(file);
    // A member of that name means the whole file is meant.
    const bool has_parts =
        std::any_of(choice.candidates.begin(), choice.candidates.end(),
                    [&](const RootCandidate& candidate) { return has_member(names_, candidate.path + "."); });
    if (choice.candidates.empty() || has_parts) return file;
    if (!choice.whole && choice.candidates.size() == 1)
      return take_found(file, choice.candidates.front().path).checkpoint;
    if (choice.whole && fit(file).complete()) return file;
    return choose_by_fit(file, choice);
  }

 private:
  RootFit fit(const Checkpoint& candidate) {
    try {
      LoadReport unused;
      const Prepared source = prepare(names_, {candidate}, options_, unused);
      return fit_of(collect_(file_has(source)), source, options_);
    } catch (const Error&) {  // a rename that does not suit it, an include that finds nothing in it
      return {};
    }
  }

  Checkpoint choose_by_fit(const Checkpoint& file, const RootChoice& choice) {
    std::vector<std::pair<std::string, RootFit>> fits;
    for (const RootCandidate& candidate : choice.candidates) {
      if (choice.candidates.size() <= kMostTried)
        fits.emplace_back(candidate.path, fit(root(file, candidate.path)));
    }
    const auto is_complete = [](const auto& pair) { return pair.second.complete(); };
    const auto is_near = [](const auto& pair) { return pair.second.found > 0; };
    const auto complete = std::count_if(fits.begin(), fits.end(), is_complete);
    const auto near = std::count_if(fits.begin(), fits.end(), is_near);
    if (complete == 1 || (complete == 0 && near == 1 && !choice.whole)) {
      const auto best = complete == 1 ? std::find_if(fits.begin(), fits.end(), is_complete)
                                      : std::find_if(fits.begin(), fits.end(), is_near);
      Checkpoint found = take_found(file, best->first).checkpoint;
      found.notes.push_back(fmt::format("of {} state dicts it is the one that fits the model: {}",
                                        fits.size(), to_string(choice.candidates)));
      return found;
    }
    if (complete == 0 && choice.whole) return file;
    std::string counts;
    for (const auto& [path, fit] : fits)
      counts +=
          fmt::format("{}{}: {} of {}", counts.empty() ? "" : ", ", quoted(path), fit.found, fit.wanted);
    fail(Errc::invalid_argument, display(file.path), "holds several state dicts, say which as root: {}; {}{}",
         to_string(choice.candidates),
         complete > 1 ? "more than one fits the model" : "none fits the model alone",
         counts.empty() ? "" : " (tensors that fit: " + counts + ")");
  }

  const Slots& names_;
  const detail::CollectSlots& collect_;
  const LoadOptions& options_;
};

Checkpoint readable(const Checkpoint& file, const LoadOptions& options) {
  record::require_readable(file);
  return options.quantized == OnQuantized::dequantize ? dequantize(file) : file;
}

}  // namespace

std::vector<Checkpoint> state_dicts_of(std::span<const Checkpoint> files, const Slots& names,
                                       const detail::CollectSlots& collect, const LoadOptions& options) {
  StateDicts state_dicts(names, collect, options);
  std::vector<Checkpoint> found;
  for (const Checkpoint& file : files) {
    const Checkpoint whole = readable(file, options);
    found.push_back(options.root ? root(whole, *options.root) : state_dicts.of(whole));
  }
  return found;
}

Checkpoint state_dict_of(const Checkpoint& file, const LoadOptions& options) {
  const Checkpoint whole = readable(file, options);
  return options.root ? root(whole, *options.root) : find_root(whole).checkpoint;
}

}  // namespace ballast
