// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/root.h"
#include "ballast/steps.h"

namespace tool {
namespace {

using ballast::Errc;
using ballast::Error;

std::vector<ballast::RenameRule> parse_renames(const std::vector<std::string>& texts) {
  std::vector<ballast::RenameRule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(Errc::invalid_argument, "--rename",
                  fmt::format("{} is not PATTERN=REPLACEMENT", ballast::quoted(text)));
    }
    rules.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return rules;
}

void take_root(Stepped& stepped, const std::string& root) {
  if (root == ".") return;
  const std::size_t before = stepped.checkpoint.size();
  if (!root.empty()) {
    stepped.checkpoint = ballast::root(stepped.checkpoint, root);
  } else {
    ballast::FoundRoot found = ballast::find_root(stepped.checkpoint);
    if (!found.path.empty()) {
      stepped.notes.push_back(fmt::format("the state dict under {} is taken; --root . takes everything",
                                          ballast::quoted(found.path)));
    }
    stepped.checkpoint = std::move(found.checkpoint);
  }
  stepped.dropped += before - std::min(before, stepped.checkpoint.size());
}

std::vector<std::string> names_of(const ballast::Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const ballast::Entry entry : checkpoint) names.emplace_back(entry.name);
  return names;
}

void apply_rules(Stepped& stepped, const std::string& path) {
  ballast::rules::Applied applied = ballast::rules::apply(stepped.checkpoint, ballast::rules::read(path));
  for (const std::string& pattern : applied.idle) {
    stepped.warnings.push_back(fmt::format("--rules: {} matched nothing", ballast::quoted(pattern)));
  }
  stepped.checkpoint = std::move(applied.checkpoint);
  stepped.origins = std::move(applied.origins);
}

void rename(Stepped& stepped, const std::vector<std::string>& texts) {
  ballast::Renamed result = ballast::rename(stepped.checkpoint, parse_renames(texts));
  for (const std::string& pattern : result.idle) {
    stepped.warnings.push_back(fmt::format("--rename {} matched nothing", ballast::quoted(pattern)));
  }
  stepped.checkpoint = std::move(result.checkpoint);
}

void filter(Stepped& stepped, const Selection& selection) {
  const std::size_t before = stepped.checkpoint.size();
  ballast::Checkpoint kept = ballast::filter(stepped.checkpoint, selection.include, selection.exclude);
  if (kept.empty() && before > 0) {
    throw Error(Errc::not_found, stepped.checkpoint.path,
                fmt::format("none of its {} tensors is left after --include and --exclude", before));
  }
  std::map<std::string_view, std::string_view> origin;
  for (std::size_t i = 0; i < before; ++i) origin[stepped.checkpoint[i].name] = stepped.origins[i];
  std::vector<std::string> origins;
  for (const ballast::Entry entry : kept) origins.emplace_back(origin[entry.name]);
  stepped.dropped += before - kept.size();
  stepped.checkpoint = std::move(kept);
  stepped.origins = std::move(origins);
}

void cast(Stepped& stepped, const std::string& word) {
  const ballast::DType dtype = parse_dtype(word);
  if (!ballast::is_floating(dtype)) {
    throw Error(Errc::invalid_argument, "--dtype",
                fmt::format("{} is no floating-point dtype", ballast::info(dtype).code));
  }
  for (const ballast::Entry entry : stepped.checkpoint) {
    if (ballast::is_floating(entry.dtype) && entry.dtype != dtype) ++stepped.cast;
  }
  stepped.checkpoint = ballast::cast(stepped.checkpoint, dtype, stepped.overflowed);
}

}  // namespace

ballast::DType parse_dtype(const std::string& word) {
  std::string code = word;
  std::transform(code.begin(), code.end(), code.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (const auto dtype = ballast::dtype_from_code(code)) return *dtype;
  if (const auto dtype = ballast::dtype_from_torch(word)) return *dtype;
  if (word == "half") return ballast::DType::f16;
  throw Error(Errc::invalid_argument, "--dtype",
              fmt::format("{} is no dtype; f32, f16, bf16, f64, f8_e4m3 and f8_e5m2 are the usual ones",
                          ballast::quoted(word)));
}

Stepped apply(const ballast::Checkpoint& checkpoint, const Steps& steps) {
  Stepped stepped{.checkpoint = checkpoint, .origins = {}, .notes = {}, .warnings = {}};
  take_root(stepped, steps.root);
  stepped.origins = names_of(stepped.checkpoint);
  if (!steps.rules.empty()) apply_rules(stepped, steps.rules);
  if (!steps.rename.empty()) rename(stepped, steps.rename);
  if (!steps.selection.include.empty() || !steps.selection.exclude.empty()) filter(stepped, steps.selection);
  if (!steps.dtype.empty()) cast(stepped, steps.dtype);
  for (std::size_t i = 0; i < stepped.checkpoint.size(); ++i) {
    if (stepped.checkpoint[i].name != stepped.origins[i]) ++stepped.renamed;
  }
  return stepped;
}

}  // namespace tool
