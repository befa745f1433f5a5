// SPDX-License-Identifier: Apache-2.0
#include "model/choose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast {
namespace {

// How well an alternative explains the file's tensors at its place.
struct Fit {
  bool fits = true;
  std::size_t tensors = 0;           // slots it has, optional ones included
  std::set<std::size_t> used;        // the file's tensors it takes
  std::string reason;                // the first thing that is wrong
  std::vector<std::uint32_t> inner;  // alternatives chosen for the choices inside it, outer ones first
};

class Chooser {
 public:
  Chooser(const Slots& slots, Matcher& matcher, const Prepared& source, Variants variants)
      : slots_(slots),
        matcher_(matcher),
        source_(source),
        variants_(variants),
        slots_of_(slots.alternatives.size()),
        choices_of_(slots.alternatives.size()) {
    for (std::size_t i = 0; i < slots.slots.size(); ++i) {
      if (slots.slots[i].alternative != kAlways) slots_of_[slots.slots[i].alternative].push_back(i);
    }
    for (const Choice& choice : slots.choices) {
      if (choice.parent != kAlways) choices_of_[choice.parent].push_back(&choice);
    }
  }

  struct Answer {
    std::optional<std::uint32_t> alternative;
    Fit fit;
    std::string problem;
  };

  Answer decide(const Choice& choice) {
    if (variants_ == Variants::held) return held(choice);
    const auto keys = keys_of(choice);
    std::vector<std::pair<std::uint32_t, Fit>> fitting;
    std::string reasons;
    std::set<std::string_view> told;  // types
    for (const std::uint32_t alternative : choice.alternatives) {
      Fit fit = fit_of(alternative);
      const std::string& type = slots_.alternatives[alternative].type;
      if (fit.fits)
        fitting.emplace_back(alternative, std::move(fit));
      else if (told.insert(type).second)
        reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", type, fit.reason);
    }
    if (keys.empty() && !(choice.optional && matcher_.has_alias_under(choice.path, choice.index_segments)))
      return without_keys(choice, std::move(fitting));
    if (fitting.empty())
      return {std::nullopt,
              {},
              choice.optional ? fmt::format("the file has it, and the member is empty: {}", reasons)
                              : "no alternative fits: " + reasons};
    return best(choice, std::move(fitting), keys);
  }

  Fit fit_of(std::uint32_t alternative) {
    Fit fit;
    const Choice& choice = slots_.choices[slots_.alternatives[alternative].choice];
    if (!slots_.alternatives[alternative].can_be_built) {
      fit.fits = false;
      fit.reason =
          choice.optional
              ? "a file does not say all that makes one: put it there before the load, or exclude its keys"
              : "has no default constructor and the variant does not hold it (hold it, or wrap it in a "
                "struct)";
      return fit;
    }
    take_sizes(alternative, fit);
    for (const std::size_t slot : slots_of_[alternative]) add_slot(slot, fit);
    for (const Choice* inner : choices_of_[alternative]) {
      Answer answer = decide(*inner);
      if (!answer.problem.empty()) refuse(fit, fmt::format("{} {}", quoted(inner->path), answer.problem));
      if (!answer.alternative) continue;
      fit.inner.push_back(*answer.alternative);
      fit.inner.insert(fit.inner.end(), answer.fit.inner.begin(), answer.fit.inner.end());
      fit.used.insert(answer.fit.used.begin(), answer.fit.used.end());
      fit.tensors += answer.fit.tensors;
    }
    refuse_unexplained(alternative, choice, fit);
    return fit;
  }

 private:
  // The file's tensors at or below its path. Those of an empty member are its own alone: not what is kept
  // out, nor what members beside it have (a Flat member has its parent's path).
  std::vector<std::size_t> keys_of(const Choice& choice) {
    std::vector<std::size_t> keys = matcher_.keys_under(choice.path, choice.index_segments);
    if (!choice.optional) return keys;
    std::erase_if(keys, [&](std::size_t key) { return !source_.wanted[key] || is_used_beside(choice, key); });
    return keys;
  }

  bool is_used_beside(const Choice& choice, std::size_t key) {
    return used_beside(choice.parent).contains(key);
  }

  const std::set<std::size_t>& used_beside(std::uint32_t parent) {
    const auto [entry, is_new] = used_beside_.try_emplace(parent);
    for (std::size_t i = 0; is_new && i < slots_.slots.size(); ++i) {
      if (slots_.slots[i].alternative != parent) continue;
      const auto& sources = matcher_.match(i).sources;
      entry->second.insert(sources.begin(), sources.end());
    }
    return entry->second;
  }

  // A layer without sizes gets those of the file, so that its tensors can be compared like all others.
  void take_sizes(std::uint32_t alternative, Fit& fit) {
    const auto& take = slots_.alternatives[alternative].take_sizes;
    if (!take) return;
    std::vector<Shape> shapes;
    for (const std::size_t slot : slots_of_[alternative])
      shapes.push_back(matcher_.match(slot).tensor.shape());
    const Match& first = matcher_.match(slots_of_[alternative].front());
    if (first.found() && !take(shapes))
      refuse(fit, fmt::format("{} is {} in the file, which no {} has", quoted(first.wanted), in_file(first),
                              slots_.alternatives[alternative].type));
  }

  // Dtype and shape before the adapter had it.
  [[nodiscard]] std::string in_file(const Match& match) const {
    const Shape shape = match.sources.size() == 1 ? source_.checkpoint[match.sources[0]].tensor().shape()
                                                  : match.tensor.shape();
    return fmt::format("{} {}", info(match.tensor.dtype()).code, to_string(shape));
  }

  // What has no sizes, or no tensors, of its own is believed only when it explains all that is there.
  void refuse_unexplained(std::uint32_t alternative, const Choice& choice, Fit& fit) {
    const bool sized_by_file = static_cast<bool>(slots_.alternatives[alternative].take_sizes);
    if (!sized_by_file && (!choice.optional || fit.tensors > 0)) return;
    for (const std::size_t key : matcher_.keys_under(choice.path, choice.index_segments)) {
      if (fit.used.contains(key) || is_used_beside(choice, key)) continue;
      return refuse(fit, fmt::format("{} is in the file, and a new one has no such tensor",
                                     quoted(source_.checkpoint[key].name)));
    }
  }

  static void refuse(Fit& fit, std::string reason) {
    if (fit.fits) fit.reason = std::move(reason);
    fit.fits = false;
  }

  void add_slot(std::size_t index, Fit& fit) {
    const Slot& slot = slots_.slots[index];
    const Match& match = matcher_.match(index);
    ++fit.tensors;
    if (!match.found()) {
      if (!is_optional(slot)) refuse(fit, fmt::format("{} is not in the file", quoted(match.wanted)));
      return;
    }
    fit.used.insert(match.sources.begin(), match.sources.end());
    const bool sized_by_file = static_cast<bool>(slots_.alternatives[slot.alternative].take_sizes);
    if (sized_by_file && match.filtered)
      refuse(fit, fmt::format("{} is kept out by include or exclude", quoted(match.wanted)));
    if (!match.problem.empty())
      refuse(fit, match.file_shape == match.model_shape
                      ? fmt::format("{}: {}", quoted(match.wanted), match.problem)
                      : fmt::format("{} is {} in the file and {} in the model", quoted(match.wanted),
                                    to_string(match.file_shape), to_string(match.model_shape)));
    else if (sized_by_file && !fits(slot, match.tensor))
      refuse(fit,
             fmt::format("{} is {} in the file, which does not go with {}", quoted(match.wanted),
                         in_file(match), quoted(matcher_.match(slots_of_[slot.alternative].front()).wanted)));
  }

  Answer held(const Choice& choice) {
    if (choice.held >= choice.alternatives.size()) return {};
    const std::uint32_t alternative = choice.alternatives[choice.held];
    return {alternative, fit_of(alternative), ""};
  }

  // Nothing of the file is here: right for an empty optional and for alternatives without tensors, else the
  // held one's tensors are missing.
  Answer without_keys(const Choice& choice, std::vector<std::pair<std::uint32_t, Fit>> fitting) {
    if (choice.optional) return {};
    const auto is_held = [&](const auto& pair) {
      return choice.held < choice.alternatives.size() && pair.first == choice.alternatives[choice.held];
    };
    if (std::any_of(fitting.begin(), fitting.end(), is_held) || fitting.size() != 1) return held(choice);
    return {fitting[0].first, std::move(fitting[0].second), ""};
  }

  // The one that leaves the fewest of the file's tensors unexplained.
  Answer best(const Choice& choice, std::vector<std::pair<std::uint32_t, Fit>> fitting,
              const std::vector<std::size_t>& keys) {
    const auto left = [&](const auto& pair) {
      return static_cast<std::size_t>(std::count_if(
          keys.begin(), keys.end(), [&](std::size_t key) { return !pair.second.used.contains(key); }));
    };
    const auto fewer = [&](const auto& a, const auto& b) { return left(a) < left(b); };
    std::stable_sort(fitting.begin(), fitting.end(), fewer);
    const auto equal = [&](const auto& pair) { return left(pair) == left(fitting[0]); };
    const auto ties = std::count_if(fitting.begin(), fitting.end(), equal);
    if (ties == 1) return {fitting[0].first, std::move(fitting[0].second), ""};
    if (std::all_of(fitting.begin(), fitting.begin() + ties,
                    [](const auto& pair) { return pair.second.tensors == 0; }))
      return held(choice);
    std::string names;
    for (std::ptrdiff_t i = 0; i < ties; ++i)
      names += (names.empty() ? "" : " and ") +
               slots_.alternatives[fitting[static_cast<std::size_t>(i)].first].type;
    return {std::nullopt,
            {},
            fmt::format("{} fit the file equally well (set .variants = Variants::held to load into the one "
                        "the model holds)",
                        names)};
  }

  const Slots& slots_;
  Matcher& matcher_;
  const Prepared& source_;
  Variants variants_;
  std::vector<std::vector<std::size_t>> slots_of_;  // by alternative
  std::vector<std::vector<const Choice*>> choices_of_;
  std::map<std::uint32_t, std::set<std::size_t>> used_beside_;  // by the alternative they are in
};

}  // namespace

Chosen choose(const Slots& slots, Matcher& matcher, const Prepared& source, Variants variants,
              LoadReport& report) {
  Chooser chooser(slots, matcher, source, variants);
  std::set<std::uint32_t> alternatives{kAlways};
  Chosen chosen;
  for (const Choice& choice : slots.choices) {
    if (choice.parent != kAlways) continue;
    Chooser::Answer answer = chooser.decide(choice);
    if (!answer.problem.empty()) {
      const auto keys = matcher.keys_under(choice.path, choice.index_segments);
      report.mismatched.push_back(
          {keys.empty() ? "" : source.origins[keys.front()], choice.path, {}, {}, answer.problem});
    }
    if (!answer.alternative) continue;
    chosen.committed.push_back(*answer.alternative);
    chosen.committed.insert(chosen.committed.end(), answer.fit.inner.begin(), answer.fit.inner.end());
  }
  alternatives.insert(chosen.committed.begin(), chosen.committed.end());
  for (const Slot& slot : slots.slots) chosen.slots.push_back(alternatives.contains(slot.alternative));
  return chosen;
}

}  // namespace ballast
