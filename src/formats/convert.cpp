// SPDX-License-Identifier: Apache-2.0
#include "ballast/convert.h"

#include <utility>

#include "ballast/display.h"
#include "ballast/root.h"
#include "base/fail.h"

namespace ballast {
namespace {

bool asks_for_nothing(const ConvertOptions& options) {
  return !options.root && options.rename.empty() && options.rules.empty() && options.reindex.empty() &&
         options.include.empty() && options.exclude.empty() && options.dtype == Precision::keep;
}

class Steps {
 public:
  explicit Steps(Checkpoint in) { now_.checkpoint = std::move(in); }

  void take_root(const std::optional<std::string>& path) {
    if (path) {
      if (!path->empty()) now_.checkpoint = ballast::root(now_.checkpoint, *path);
    } else {
      FoundRoot found = find_root(now_.checkpoint);
      now_.checkpoint = std::move(found.checkpoint);
      now_.root = std::move(found.path);
    }
    for (const Entry& entry : now_.checkpoint) now_.origins.emplace_back(entry.name);
  }

  void change(const std::vector<RenameRule>& renames, const std::vector<rules::Rule>& others) {
    std::vector<rules::Rule> all = rules::from_renames(renames);
    all.insert(all.end(), others.begin(), others.end());
    if (all.empty()) return;
    rules::Applied applied = rules::apply(now_.checkpoint, all);
    now_.checkpoint = std::move(applied.checkpoint);
    now_.origins = std::move(applied.origins);
    now_.idle = std::move(applied.idle);
  }

  void choose(const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
    if (include.empty() && exclude.empty()) return;
    Checkpoint kept = filter(now_.checkpoint, include, exclude);
    std::vector<std::string> origins;
    for (const Entry& entry : kept)
      origins.push_back(std::move(now_.origins[*now_.checkpoint.position(entry.name)]));
    now_.checkpoint = std::move(kept);
    now_.origins = std::move(origins);
  }

  Converted run(const ConvertOptions& options) {
    const std::size_t before = now_.checkpoint.size();
    take_root(options.root);
    change(options.rename, options.rules);
    if (!options.reindex.empty())
      now_.checkpoint = ballast::reindex(now_.checkpoint, options.reindex).checkpoint;
    choose(options.include, options.exclude);
    if (now_.checkpoint.empty() && before > 0) {
      fail(Errc::not_found, display(now_.checkpoint.path),
           "none of its {} tensors is left after the steps asked for", before);
    }
    now_.checkpoint = cast(now_.checkpoint, options.dtype);
    return std::move(now_);
  }

 private:
  Converted now_;
};

}  // namespace

Converted apply_steps(const Checkpoint& in, const ConvertOptions& options) {
  return Steps(in).run(options);
}

bool keeps_everything(const std::string& out, const ConvertOptions& options) {
  const bool to_torch =
      options.file.format.empty() ? !out.ends_with(".safetensors") : options.file.format.starts_with("torch");
  return to_torch && asks_for_nothing(options);
}

Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options) {
  const Checkpoint file = open(in);
  ConvertOptions steps = options;
  if (keeps_everything(out, options)) steps.root = "";
  Converted result = apply_steps(file, steps);
  save(result.checkpoint, out, options.file);
  return result;
}

}  // namespace ballast
