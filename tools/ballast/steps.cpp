// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/root.h"
#include "ballast/steps.h"

namespace tool {
namespace {

using ballast::Errc;
using ballast::Error;

std::vector<ballast::RenameRule> parse_rules(const std::vector<std::string>& texts) {
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

ballast::Checkpoint take_root(ballast::Checkpoint checkpoint, const Steps& steps, StepsReport& report) {
  if (steps.root) return steps.root->empty() ? checkpoint : ballast::root(checkpoint, *steps.root);
  ballast::FoundRoot found = ballast::find_root(checkpoint);
  report.root = found.path;
  return std::move(found.checkpoint);
}

ballast::DType target_dtype(const std::string& word) {
  const ballast::DType dtype = parse_dtype(word);
  if (!ballast::is_floating(dtype)) {
    throw Error(Errc::invalid_argument, "--dtype",
                fmt::format("{} is no floating-point dtype", ballast::info(dtype).code));
  }
  return dtype;
}

// Tensors on one view are cast to one: tied ones stay tied.
ballast::Checkpoint cast_floating(const ballast::Checkpoint& in, ballast::DType dtype, StepsReport& report) {
  for (const ballast::Entry entry : in) {
    if (ballast::is_floating(entry.dtype) && entry.dtype != dtype) ++report.cast;
  }
  return ballast::cast(in, dtype, report.overflowed);
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

ballast::Checkpoint apply(ballast::Checkpoint checkpoint, const Steps& steps, StepsReport& report) {
  const std::vector<ballast::RenameRule> renames = parse_rules(steps.rename);
  const std::size_t before = checkpoint.size();
  checkpoint = take_root(std::move(checkpoint), steps, report);
  if (!steps.rules.empty()) {
    ballast::rules::Applied applied = ballast::rules::apply(checkpoint, ballast::rules::read(steps.rules));
    report.idle.insert(report.idle.end(), applied.idle.begin(), applied.idle.end());
    checkpoint = std::move(applied.checkpoint);
  }
  if (!renames.empty()) {
    ballast::Renamed renamed = ballast::rename(checkpoint, renames);
    report.renamed = renamed.changed.size();
    report.idle.insert(report.idle.end(), renamed.idle.begin(), renamed.idle.end());
    checkpoint = std::move(renamed.checkpoint);
  }
  checkpoint = select(std::move(checkpoint), steps.selection);
  report.dropped = before - std::min(before, checkpoint.size());
  if (checkpoint.empty() && before > 0) {
    throw Error(Errc::not_found, ballast::display(checkpoint.path),
                fmt::format("none of its {} tensors is left after the steps asked for", before));
  }
  return steps.dtype.empty() ? checkpoint : cast_floating(checkpoint, target_dtype(steps.dtype), report);
}

}  // namespace tool
