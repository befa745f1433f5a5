// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/pipeline.h"

#include <algorithm>
#include <utility>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "ballast/steps.h"
#include "base/fail.h"
#include "checkpoint/marks.h"
#include "checkpoint/pattern.h"
#include "checkpoint/steps.h"

namespace ballast {
namespace {

// A batch norm: the mean and the variance stand beside each other and have one shape [n]. The name alone
// could be anything's.
bool is_batch_norm(const Checkpoint& checkpoint, const std::string& layer) {
  const auto mean = checkpoint.position(layer + "running_mean");
  const auto variance = checkpoint.position(layer + "running_var");
  if (!mean || !variance) return false;
  const Entry a = checkpoint[*mean];
  const Entry b = checkpoint[*variance];
  return a.dtype == b.dtype && a.shape.size() == 1 && std::ranges::equal(a.shape, b.shape);
}

bool is_of_batch_norm(const Checkpoint& in, const Entry& entry) {
  const std::size_t dot = entry.name.rfind('.');
  const std::string layer(dot == entry.name.npos ? "" : entry.name.substr(0, dot + 1));
  const std::string_view field = entry.name.substr(layer.size());
  const bool is_field = field == "weight" || field == "bias" || field == "gamma" || field == "beta" ||
                        field == "running_mean" || field == "running_var";
  return is_field && is_batch_norm(in, layer) &&
         std::ranges::equal(entry.shape, in[*in.position(layer + "running_mean")].shape);
}

// Which tensors 16 bits and fewer leave as they are: those whose names match, and whole batch norms. load()
// knows the layers of its model, and does the same (model/convert.h).
std::vector<bool> kept_wide(const Checkpoint& in, const Steps& steps) {
  const KeyFilter matching(steps.keep_dtype, {});
  std::vector<bool> kept;
  for (const Entry& entry : in)
    kept.push_back((!steps.keep_dtype.empty() && matching.passes(entry.name)) ||
                   (steps.keep_statistics && is_of_batch_norm(in, entry)));
  return kept;
}

// Weights that one file has under `path` stand at the top of what was made of it.
bool lies_at_the_top(const Checkpoint& checkpoint, const std::string& path) {
  try {
    static_cast<void>(root(checkpoint, path));
    return false;
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
  return !checkpoint.tree || find_root(checkpoint).path.empty();
}

}  // namespace

Pipeline::Pipeline(const Checkpoint& in) : checkpoint(marks::with_ties(in)) {
  for (const Entry& entry : checkpoint) origins.emplace_back(entry.name);
}

std::vector<std::string_view> Pipeline::names() const {
  std::vector<std::string_view> all;
  for (const Entry& entry : checkpoint) all.push_back(entry.name);
  return all;
}

void Pipeline::note_unmatched(std::string_view step, const std::vector<std::string>& patterns) {
  for (const std::string& text : patterns) {
    checkpoint.notes.push_back(fmt::format("{} pattern {} matched no key", step, quoted(text)));
    unmatched.push_back(text);
  }
}

void Pipeline::change(const std::vector<RenameRule>& rename, const std::vector<rules::Rule>& rules,
                      const std::shared_ptr<CastCount>& count) {
  std::vector<rules::Rule> all(rename.begin(), rename.end());
  all.insert(all.end(), rules.begin(), rules.end());
  if (all.empty()) return;
  rules::Applied applied = rules::apply(checkpoint, all, count);
  checkpoint = std::move(applied.checkpoint);
  origins = std::move(applied.origins);
  unmatched.insert(unmatched.end(), applied.unmatched.begin(), applied.unmatched.end());
}

std::string Pipeline::strip_prefixes() {
  Renamed result = strip_common_prefixes(checkpoint);
  checkpoint = std::move(result.checkpoint);
  if (result.changed.empty()) return {};
  const auto& [before, after] = result.changed.front();
  return before.substr(0, before.size() - after.size());
}

void Pipeline::rename_each(const std::function<std::string(std::string_view)>& new_name) {
  std::vector<std::string> renamed;
  for (const Entry& entry : checkpoint) renamed.push_back(new_name(entry.name));
  checkpoint = with_names(checkpoint, renamed);
}

std::vector<bool> Pipeline::passing(const std::vector<std::string>& include,
                                    const std::vector<std::string>& exclude) {
  PatternWork work;
  const Found included = found(include, names(), work);
  const Found excluded = found(exclude, names(), work);
  note_unmatched("include", included.unmatched);
  note_unmatched("exclude", excluded.unmatched);
  std::vector<bool> result;
  for (std::size_t i = 0; i < checkpoint.size(); ++i)
    result.push_back((include.empty() || included.names[i]) && !excluded.names[i]);
  return result;
}

void Pipeline::filter(const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
  if (include.empty() && exclude.empty()) return;
  const std::vector<bool> passes = passing(include, exclude);
  Checkpoint kept = only(checkpoint, passes);
  // A slip in a pattern must not look like a file in which everything is fine.
  if (kept.empty() && !checkpoint.empty())
    fail(Errc::not_found, display(checkpoint.path),
         "none of its {} tensors is left by include and exclude; the first is {}", checkpoint.size(),
         quoted(checkpoint[0].name));
  checkpoint = std::move(kept);
  std::size_t index = 0;
  std::erase_if(origins, [&](const std::string&) { return !passes[index++]; });
}

void Pipeline::reindex(const std::vector<std::string>& prefixes, const std::vector<std::string>& keep) {
  if (prefixes.empty()) return;
  std::vector<std::string_view> numbered;
  for (const Entry& entry : checkpoint)
    for (const NumberedSegment& segment : numbered_segments(entry.name)) numbered.push_back(segment.prefix);
  note_unmatched("reindex", ballast::unmatched(prefixes, numbered));
  note_unmatched("keep_positions", ballast::unmatched(keep, numbered));
  checkpoint = ballast::reindex(checkpoint, prefixes, keep).checkpoint;
}

std::uint64_t Pipeline::cast(const Steps& steps, const std::shared_ptr<CastCount>& count) {
  if (steps.dtype == Precision::keep) return 0;
  const DType dtype = target_dtype(steps.dtype);
  note_unmatched("keep_dtype", ballast::unmatched(steps.keep_dtype, names()));
  const Checkpoint before = std::move(checkpoint);
  const std::vector<bool> kept = kept_wide(before, steps);
  checkpoint = cast_where(
      before, dtype, [&](std::size_t i) { return !kept[i] || !is_narrower(before[i].dtype, dtype); }, count);
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) changed += before[i].dtype != checkpoint[i].dtype ? 1U : 0U;
  return changed;
}

Stepped apply_steps(Checkpoint in, const Steps& steps) {
  Stepped result;
  const std::string path = in.path;
  const Format format = in.format;
  const std::size_t size = in.size();
  Checkpoint taken = steps.quantized == OnQuantized::dequantize ? dequantize(in) : std::move(in);
  in = {};  // a name may take more than its tensor, and there may be very many
  if (!steps.root) {
    FoundRoot found = find_root(taken);
    taken = std::move(found.checkpoint);
    result.root = std::move(found.path);
  } else if (!steps.root->empty()) {
    taken = root(taken, *steps.root);
  }
  taken.path = path;
  taken.format = format;
  Pipeline pipeline(taken);
  pipeline.change(steps.rename, steps.rules, result.count);
  if (pipeline.checkpoint.empty() && size != 0)
    fail(Errc::not_found, display(path), "none of its {} tensors is left after the steps asked for", size);
  if (steps.strip_prefixes) pipeline.strip_prefixes();
  pipeline.filter(steps.include, steps.exclude);
  pipeline.reindex(steps.reindex, steps.keep_positions);
  result.cast = pipeline.cast(steps, result.count);
  result.taken = std::move(taken);
  result.checkpoint = std::move(pipeline.checkpoint);
  result.origins = std::move(pipeline.origins);
  result.unmatched = std::move(pipeline.unmatched);
  return result;
}

Steps steps_of_other(const Steps& steps, const Checkpoint& other) {
  Steps taken;
  taken.quantized = steps.quantized;
  taken.root = steps.root && lies_at_the_top(other, *steps.root) ? "" : steps.root;
  taken.include = steps.include;
  taken.exclude = steps.exclude;
  return taken;
}

}  // namespace ballast
