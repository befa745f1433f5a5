// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/ledger.h"

#include <algorithm>

#include "ballast/error.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kReportedOffsets = 1000;
constexpr std::size_t kReportedFindings = 1000;
constexpr std::uint64_t kRowFootprint = 256;  // beside the texts

}  // namespace

void Ledger::find(Severity severity, Errc code, std::string what, std::uint64_t offset,
                  std::string_view entry) {
  if (report_ == nullptr) return;
  std::size_t& count = found_.at(static_cast<std::size_t>(severity));
  if (++count > kReportedFindings) return;
  report_->findings.push_back({.severity = severity,
                               .code = code,
                               .what = std::move(what),
                               .offset = offset,
                               .entry = std::string(entry)});
}

void Ledger::note_global(GlobalRow& global, std::string_view name) {
  if (report_ == nullptr) return;
  auto& globals = report_->globals;
  if (global.stream != reading_.machine->number()) {
    const std::string& entry = reading_.machine->stream().entry;
    reading_.budget().take(kRowFootprint + name.size() + entry.size());
    global.stream = reading_.machine->number();
    global.row = globals.size();
    globals.push_back({.name = std::string(name),
                       .offset = reading_.machine->offset(),
                       .count = 0,
                       .verdict = global.verdict,
                       .entry = entry});
  }
  ++globals[global.row].count;
}

void Ledger::note_call(TypeId type, Verdict verdict) {
  if (report_ == nullptr) return;
  auto& calls = report_->calls;
  const auto [slot, added] =
      called_.try_emplace(std::uint64_t{reading_.machine->number()} << 32U | type, calls.size());
  if (added) {
    const std::string_view name = reading_.tree().type_name(type);
    const std::string& entry = reading_.machine->stream().entry;
    reading_.budget().take(kRowFootprint + name.size() + entry.size());
    calls.push_back({.name = std::string(name),
                     .offset = reading_.machine->offset(),
                     .count = 0,
                     .verdict = verdict,
                     .entry = entry,
                     .offsets = {}});
  }
  ScanCall& call = calls[slot->second];
  ++call.count;
  call.verdict = std::max(call.verdict, verdict);
  if (verdict != Verdict::clean && call.offsets.size() < kReportedOffsets)
    call.offsets.push_back(reading_.machine->offset());
}

void Ledger::note_misfit(TypeId type) {
  unknown_.insert(std::string(reading_.tree().type_name(type)));
  if (report_ == nullptr) return;
  const auto found = called_.find(std::uint64_t{reading_.machine->number()} << 32U | type);
  if (found == called_.end()) return note_call(type, Verdict::unknown);
  ScanCall& row = report_->calls[found->second];
  row.verdict = std::max(row.verdict, Verdict::unknown);
  if (row.offsets.size() < kReportedOffsets) row.offsets.push_back(reading_.machine->offset());
}

void Ledger::forbid(const std::string& name) {
  find(Severity::danger, Errc::forbidden_global, fmt::format("{} could run code", display(name)),
       reading_.machine->offset(), reading_.machine->stream().entry);
  if (!reading_.settings().inert) {
    reading_.refuse(
        Errc::forbidden_global,
        "the pickle names {}, which could run code; nothing was run (--inert, inert = true: read past it)",
        display(name));
  }
}

void Ledger::note_left_out(std::string sentence) {
  constexpr std::size_t kMost = 12;
  if (left_out_.size() == kMost || std::find(left_out_.begin(), left_out_.end(), sentence) != left_out_.end())
    return;
  left_out_.push_back(std::move(sentence));
}

}  // namespace ballast::torch
