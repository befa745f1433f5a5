// SPDX-License-Identifier: Apache-2.0
// Which tensors, by name: --include and --exclude.
#pragma once

#include <re2/re2.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

struct Selection {
  std::vector<std::string> include;
  std::vector<std::string> exclude;
};

void add_selection_options(CLI::App& command, Selection& selection);

/// Throws invalid-argument for a pattern RE2 does not understand, with its reason.
[[nodiscard]] std::unique_ptr<RE2> compile_pattern(const std::string& pattern, std::string_view option);

class NameFilter {
 public:
  explicit NameFilter(const Selection& selection);
  /// Some include pattern matches somewhere in the name (or there is none), and no exclude pattern does.
  [[nodiscard]] bool takes(std::string_view name) const;

  [[nodiscard]] bool takes_all() const noexcept { return include_.empty() && exclude_.empty(); }

 private:
  std::vector<std::unique_ptr<RE2>> include_;
  std::vector<std::unique_ptr<RE2>> exclude_;
};

}  // namespace tool
