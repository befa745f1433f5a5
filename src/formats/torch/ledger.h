// SPDX-License-Identifier: Apache-2.0
// What a scan is told: every global and call with its verdict, and what was found besides. Without a scan it
// keeps the names that nobody knows, for a note.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/torch/reading.h"

namespace ballast::torch {

/// A global, and where it stands in the report.
struct GlobalRow {
  Verdict verdict = Verdict::unknown;
  std::uint32_t stream = 0;  // in whose rows it is
  std::size_t row = 0;
};

class Ledger {
 public:
  /// The reading lives as long. Without a report in its settings nobody scans.
  explicit Ledger(const Reading& reading) : reading_(reading), report_(reading.settings().report) {}

  void find(Severity severity, Errc code, std::string what, std::uint64_t offset, std::string_view entry);
  void note_global(GlobalRow& global, std::string_view name);
  void note_call(TypeId type, Verdict verdict);
  /// The last call of this type is not what its role is: the verdict is unknown.
  void note_misfit(TypeId type);
  /// It could run code: refused, unless the file is read inertly.
  void forbid(const std::string& name);

  void note_unknown(std::string name) { unknown_.insert(std::move(name)); }

  [[nodiscard]] const std::set<std::string, std::less<>>& unknown_names() const noexcept { return unknown_; }

  /// What is in the file and not among its tensors, in a sentence; the first dozen are kept, and each once.
  void note_left_out(std::string sentence);

  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }

 private:
  const Reading& reading_;
  ScanReport* report_;
  std::set<std::string, std::less<>> unknown_;
  std::vector<std::string> left_out_;
  std::array<std::size_t, 3> found_ = {};                  // by severity
  std::unordered_map<std::uint64_t, std::size_t> called_;  // stream and type → row
};

}  // namespace ballast::torch
