// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "ballast/display.h"
#include "ballast/error.h"

namespace tool {
namespace {

std::vector<std::unique_ptr<RE2>> compile_all(const std::vector<std::string>& patterns,
                                              std::string_view option) {
  std::vector<std::unique_ptr<RE2>> compiled;
  for (const std::string& pattern : patterns) compiled.push_back(compile_pattern(pattern, option));
  return compiled;
}

bool any_matches(const std::vector<std::unique_ptr<RE2>>& patterns, std::string_view name) {
  const re2::StringPiece text(name.data(), name.size());
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& pattern) { return RE2::PartialMatch(text, *pattern); });
}

}  // namespace

void add_selection_options(CLI::App& command, Selection& selection) {
  command.add_option("--include", selection.include, "Only tensors whose name matches; may be given again")
      ->type_name("RE")
      ->allow_extra_args(false);
  command.add_option("--exclude", selection.exclude, "No tensors whose name matches; may be given again")
      ->type_name("RE")
      ->allow_extra_args(false);
}

std::unique_ptr<RE2> compile_pattern(const std::string& pattern, std::string_view option) {
  RE2::Options quiet(RE2::Quiet);
  auto compiled = std::make_unique<RE2>(pattern, quiet);
  if (!compiled->ok()) {
    throw ballast::Error(ballast::Errc::invalid_argument, std::string(option),
                         fmt::format("{} is not a regular expression RE2 knows: {}", ballast::quoted(pattern),
                                     compiled->error()));
  }
  return compiled;
}

NameFilter::NameFilter(const Selection& selection)
    : include_(compile_all(selection.include, "--include")),
      exclude_(compile_all(selection.exclude, "--exclude")) {}

bool NameFilter::takes(std::string_view name) const {
  return (include_.empty() || any_matches(include_, name)) && !any_matches(exclude_, name);
}

}  // namespace tool
