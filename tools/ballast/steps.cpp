// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "ballast/display.h"
#include "ballast/error.h"
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

ballast::ConvertOptions Steps::options() const {
  return {.root = root,
          .rename = parse_rules(rename),
          .rules = rules.empty() ? std::vector<ballast::rules::Rule>{} : ballast::rules::read(rules),
          .reindex = reindex,
          .include = selection.include,
          .exclude = selection.exclude};
}

ballast::Checkpoint apply(const ballast::Checkpoint& checkpoint, const Steps& steps, StepsReport& report) {
  ballast::Converted converted = ballast::apply_steps(checkpoint, steps.options());
  for (std::size_t i = 0; i < converted.origins.size(); ++i)
    report.renamed += converted.checkpoint[i].name != converted.origins[i];
  report.dropped = checkpoint.size() - std::min(checkpoint.size(), converted.checkpoint.size());
  report.root = std::move(converted.root);
  report.idle = std::move(converted.idle);
  report.origins = std::move(converted.origins);
  if (steps.dtype.empty()) return std::move(converted.checkpoint);
  return cast_floating(converted.checkpoint, target_dtype(steps.dtype), report);
}

}  // namespace tool
