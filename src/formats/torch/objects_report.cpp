// SPDX-License-Identifier: Apache-2.0
// What a scan is told of globals and calls, and the refusal of those that could run code.
#include <algorithm>

#include "ballast/error.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kReportedOffsets = 1000;
constexpr std::size_t kReportedFindings = 1000;
constexpr std::uint64_t kRowFootprint = 256;  // beside the texts

}  // namespace

void Objects::find(Severity severity, Errc code, std::string what, std::uint64_t offset,
                   std::string_view entry) {
  if (settings_.report == nullptr) return;
  std::size_t& count = found_.at(static_cast<std::size_t>(severity));
  if (++count > kReportedFindings) return;
  settings_.report->findings.push_back({.severity = severity,
                                        .code = code,
                                        .what = std::move(what),
                                        .offset = offset,
                                        .entry = std::string(entry)});
}

void Objects::note_global(Global& global, std::string_view name) {
  if (settings_.report == nullptr) return;
  auto& globals = settings_.report->globals;
  if (global.stream != machine->number()) {
    const std::string& entry = machine->stream().entry;
    budget_->take(kRowFootprint + name.size() + entry.size());
    global.stream = machine->number();
    global.row = globals.size();
    globals.push_back({.name = std::string(name),
                       .offset = machine->offset(),
                       .count = 0,
                       .verdict = global.verdict,
                       .entry = entry});
  }
  ++globals[global.row].count;
}

void Objects::note_call(TypeId type, Verdict verdict) {
  if (settings_.report == nullptr) return;
  auto& calls = settings_.report->calls;
  const auto [slot, added] =
      called_.try_emplace(std::uint64_t{machine->number()} << 32U | type, calls.size());
  if (added) {
    const std::string_view name = tree_->type_name(type);
    const std::string& entry = machine->stream().entry;
    budget_->take(kRowFootprint + name.size() + entry.size());
    calls.push_back({.name = std::string(name),
                     .offset = machine->offset(),
                     .count = 0,
                     .verdict = verdict,
                     .entry = entry,
                     .offsets = {}});
  }
  ScanCall& call = calls[slot->second];
  ++call.count;
  call.verdict = std::max(call.verdict, verdict);
  if (verdict != Verdict::clean && call.offsets.size() < kReportedOffsets)
    call.offsets.push_back(machine->offset());
}

void Objects::note_misfit(TypeId type) {
  unknown_.insert(std::string(tree_->type_name(type)));
  if (settings_.report == nullptr) return;
  const auto found = called_.find(std::uint64_t{machine->number()} << 32U | type);
  if (found == called_.end()) return note_call(type, Verdict::unknown);
  ScanCall& row = settings_.report->calls[found->second];
  row.verdict = std::max(row.verdict, Verdict::unknown);
  if (row.offsets.size() < kReportedOffsets) row.offsets.push_back(machine->offset());
}

void Objects::forbid(const std::string& name) {
  find(Severity::danger, Errc::forbidden_global, fmt::format("{} could run code", display(name)),
       machine->offset(), machine->stream().entry);
  if (!settings_.inert) {
    refuse(Errc::forbidden_global,
           "the pickle names {}, which could run code; nothing was run (open it as inert to look at it)",
           display(name));
  }
}

}  // namespace ballast::torch
