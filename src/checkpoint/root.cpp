// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <unordered_map>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/fail.h"
#include "base/key_path.h"
#include "checkpoint/flatten.h"
#include "checkpoint/marks.h"
#include "checkpoint/root_choice.h"
#include "checkpoint/value_tree.h"

namespace ballast {
namespace {

constexpr std::array<std::string_view, 11> kUsualNames = {
    "state_dict", "model_state_dict", "model",  "module", "net",      "network",
    "weights",    "params_ema",       "params", "ema",    "generator"};
constexpr std::array<std::string_view, 12> kNotWeights = {
    "optimizer",    "optimizers",    "optim",  "opt",     "scheduler",   "schedulers",
    "lr_scheduler", "lr_schedulers", "scaler", "scalers", "grad_scaler", "rng"};
constexpr std::size_t kDeepestRoot = 3;
constexpr std::size_t kMostCounted = 4'000'000;  // containers, tensors, and storages for each of them
constexpr std::size_t kUnusual = 99;

constexpr std::size_t kMostCandidates = 20;

struct Ranked {
  RootCandidate candidate;
  std::size_t rank = 0;
  bool only_numbers = false;  // no tensor of more than one element: metrics, not weights
};

std::size_t rank_of(std::string_view path) {
  if (path.empty()) return 0;
  const std::string_view last = key_path::last(path);
  const auto* const found = std::find(kUsualNames.begin(), kUsualNames.end(), last);
  return found == kUsualNames.end() ? kUnusual : 1 + static_cast<std::size_t>(found - kUsualNames.begin());
}

// "opt", "opt_state" and "optG" are optimizers, "optics" is none.
bool is_skipped(std::string_view key) {
  return std::any_of(kNotWeights.begin(), kNotWeights.end(), [&](std::string_view word) {
    if (!key.starts_with(word)) return false;
    return key.size() == word.size() || key[word.size()] < 'a' || key[word.size()] > 'z';
  });
}

Checkpoint flattened(const Value& value) {
  Checkpoint out;
  out.tree = value;
  flatten(value, out);
  return out;
}

// What a dict maps, also one of a class of its own; None when the value is no dict.
Value mapping_of(const Value& value) {
  if (value.kind() == Kind::dict) return value;
  return value.kind() == Kind::object ? value.pairs() : Value();
}

// Text keys only, and more tensors than anything else.
bool is_state_dict(const Value& value) {
  if (value.size() == 0) return false;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value.key(i).kind() != Kind::string) return false;
    if (value.value(i).kind() == Kind::tensor) ++tensors;
  }
  return 2 * tensors > value.size();
}

struct Look {
  Value value;
  std::string path;
  std::size_t depth;
};

// What lies in a container, if it is weights at all.
struct Held {
  bool weights = false;
  bool only_numbers = false;
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

Held held_by(const Value& value) {
  if (!is_model(value) && !is_state_dict(mapping_of(value))) return {};
  const Checkpoint part = flattened(value);
  const bool only_numbers = std::all_of(part.begin(), part.end(), [](const Entry& entry) {
    return std::all_of(entry.shape.begin(), entry.shape.end(), [](std::int64_t size) { return size == 1; });
  });
  return {.weights = true, .only_numbers = only_numbers, .tensors = part.size(), .bytes = part.total_bytes()};
}

// Breadth first, and into each container once: files may hold one under a million names, or within itself.
std::vector<Ranked> look_around(const Value& root) {
  std::vector<Ranked> found;
  std::unordered_map<std::uint64_t, Held> known;
  const std::size_t storages = ValueTree::tree(root) ? ValueTree::tree(root)->storages.size() : 0;
  std::size_t counted = 0;
  std::vector<Look> looks = {{root, {}, 0}};
  for (std::size_t next = 0; next < looks.size() && counted < kMostCounted; ++next) {
    const Look look = looks[next];
    const auto [at, is_new] = known.try_emplace(ValueTree::ref(look.value).bits());
    if (is_new) at->second = held_by(look.value);
    const Held& held = at->second;
    counted += 1 + (is_new && held.weights ? held.tensors + storages : 0);
    if (held.tensors > 0)
      found.push_back({{look.path, held.tensors, held.bytes}, rank_of(look.path), held.only_numbers});
    if (held.weights || !is_new || look.depth == kDeepestRoot) continue;
    const Value mapping = mapping_of(look.value);
    for (std::size_t i = 0; i < mapping.size(); ++i) {
      const Value key = mapping.key(i);
      if (key.kind() != Kind::string || is_skipped(key.as_string())) continue;
      const Value below = mapping.value(i);
      if (below.kind() != Kind::dict && below.kind() != Kind::object) continue;
      looks.push_back({below, key_path::joined(look.path, key.as_string()), look.depth + 1});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
  return found;
}

std::vector<RootCandidate> plain(const std::vector<Ranked>& ranked) {
  std::vector<RootCandidate> candidates;
  for (const Ranked& one : ranked) candidates.push_back(one.candidate);
  return candidates;
}

// A file without a tree has names only.
Checkpoint below_prefix(const Checkpoint& given, std::string_view path) {
  const Checkpoint checkpoint = marks::with_ties(given);
  Checkpoint out;
  const std::string prefix = std::string(path) + ".";
  std::vector<std::optional<std::string>> names;
  for (const Entry& entry : checkpoint) {
    const bool below = entry.name.starts_with(prefix);
    names.push_back(below ? std::optional<std::string>(entry.name.substr(prefix.size())) : std::nullopt);
    if (below) out.add(*names.back(), entry.tensor());
  }
  if (out.empty())
    fail(Errc::not_found, display(checkpoint.path), "no tensor's name begins with {}", quoted(prefix));
  out.metadata = checkpoint.metadata;
  marks::follow_names(checkpoint, names, out);
  return out;
}

bool same_tensors(const Checkpoint& a, const Checkpoint& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || !a[i].tensor().same_view(b[i].tensor())) return false;
  }
  return true;
}

// One model under two names, or a model and its own state dict, is one candidate: the first.
std::vector<RootCandidate> without_repeats(const Checkpoint& checkpoint,
                                           const std::vector<RootCandidate>& candidates) {
  if (candidates.size() < 2 || candidates.size() > kMostCandidates) return candidates;
  std::vector<RootCandidate> kept;
  std::vector<Checkpoint> seen;
  for (const RootCandidate& candidate : candidates) {
    Checkpoint part = root(checkpoint, candidate.path);
    if (std::any_of(seen.begin(), seen.end(), [&](const Checkpoint& one) { return same_tensors(one, part); }))
      continue;
    kept.push_back(candidate);
    seen.push_back(std::move(part));
  }
  return kept;
}

// Tensors outside `path`, not counting the optimizer's and the like.
bool has_others(const Checkpoint& checkpoint, const std::string& path) {
  return std::any_of(checkpoint.begin(), checkpoint.end(), [&](const Entry& entry) {
    return !entry.name.starts_with(path + ".") && !is_skipped(entry.name.substr(0, entry.name.find('.')));
  });
}

void keep_rest(const Checkpoint& from, Checkpoint& to) {
  to.format = from.format;
  to.path = from.path;
  if (from.tree) to.metadata = from.metadata;
  to.notes.insert(to.notes.begin(), from.notes.begin(), from.notes.end());
}

}  // namespace

std::string to_string(const std::vector<RootCandidate>& candidates) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < candidates.size() && i < kMost; ++i) {
    text += fmt::format("{}{} ({} {}, {} bytes)", text.empty() ? "" : ", ", quoted(candidates[i].path),
                        candidates[i].tensors, candidates[i].tensors == 1 ? "tensor" : "tensors",
                        candidates[i].bytes);
  }
  if (candidates.size() > kMost) text += fmt::format(" and {} more", candidates.size() - kMost);
  return text;
}

namespace {

bool is_program(const Checkpoint& checkpoint) {
  return checkpoint.format && checkpoint.format->is_program;
}

}  // namespace

std::vector<RootCandidate> root_candidates(const Checkpoint& checkpoint) {
  if (checkpoint.tree && !is_program(checkpoint)) return plain(look_around(*checkpoint.tree));
  if (checkpoint.empty()) return {};
  return {{.path = {}, .tensors = checkpoint.size(), .bytes = checkpoint.total_bytes()}};
}

Checkpoint root(const Checkpoint& checkpoint, std::string_view path) {
  if (path.empty()) return checkpoint;
  Checkpoint out;
  if (!checkpoint.tree) {
    out = below_prefix(checkpoint, path);
  } else {
    const auto value = checkpoint.tree->find_path(path);
    if (!value) {
      const auto candidates = root_candidates(checkpoint);
      fail(Errc::not_found, display(checkpoint.path), "nothing at {}{}{}", quoted(path),
           candidates.empty() ? "" : "; state dicts are at ", to_string(candidates));
    }
    if (value->kind() != Kind::dict && value->kind() != Kind::object && value->kind() != Kind::list &&
        value->kind() != Kind::tuple) {
      fail(Errc::type_mismatch, display(checkpoint.path), "{} is {} ({}), not a dict of tensors",
           quoted(path), name(value->kind()), display(value->type()));
    }
    out = flattened(*value);
  }
  keep_rest(checkpoint, out);
  return out;
}

RootChoice root_choice(const Checkpoint& checkpoint) {
  if (!checkpoint.tree || is_program(checkpoint)) return {};
  std::vector<Ranked> ranked = look_around(*checkpoint.tree);
  if (ranked.empty() || ranked.front().candidate.path.empty()) return {};
  const auto is_metrics = [](const Ranked& one) { return one.rank == kUnusual && one.only_numbers; };
  if (!std::all_of(ranked.begin(), ranked.end(), is_metrics)) std::erase_if(ranked, is_metrics);
  const bool none_is_usual = ranked.front().rank == kUnusual;
  RootChoice choice{.whole = none_is_usual, .candidates = without_repeats(checkpoint, plain(ranked))};
  if (ranked.size() == 1 && !has_others(checkpoint, ranked.front().candidate.path)) choice.whole = false;
  return choice;
}

FoundRoot take_found(const Checkpoint& checkpoint, const std::string& path) {
  FoundRoot found{root(checkpoint, path), path};
  found.checkpoint.notes.push_back(fmt::format("the state dict was found at {}", quoted(path)));
  return found;
}

FoundRoot find_root(const Checkpoint& checkpoint) {
  const RootChoice choice = root_choice(checkpoint);
  if (choice.whole) return {checkpoint, {}};
  if (choice.candidates.size() > 1) {
    fail(Errc::invalid_argument, display(checkpoint.path), "holds several state dicts, say which as root: {}",
         to_string(choice.candidates));
  }
  return take_found(checkpoint, choice.candidates.front().path);
}

}  // namespace ballast
