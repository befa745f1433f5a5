// SPDX-License-Identifier: Apache-2.0
// files/F/scan and files/F/pickle: what loading the file would do in Python, down to the opcode.
#include "ballast/scan.h"

#include <fmt/format.h>

#include <map>
#include <span>

#include "ballast/error.h"
#include "text.h"
#include "view/app.h"

namespace tool::view {
namespace {

struct Found {
  const char* level;
  std::string what;
  std::string entry;
  std::uint64_t offset;
  bool has_place = true;
};

const char* level_of(ballast::Severity severity) {
  switch (severity) {
    case ballast::Severity::danger:
      return "danger";
    case ballast::Severity::warning:
      return "unknown";
    case ballast::Severity::note:
      break;
  }
  return "info";
}

const char* level_of(ballast::Verdict verdict) {
  return verdict == ballast::Verdict::danger  ? "danger"
         : verdict == ballast::Verdict::clean ? "info"
                                              : "unknown";
}

// A file of a megabyte can have a hundred thousand.
constexpr std::size_t kMostFindings = 2000;

// each(level, how to make it), of what the scan says in words, then of every name and every call that has no
// role.
template <class Each>
void for_each_finding(const ballast::ScanReport& report, Each&& each) {
  for (const ballast::ScanFinding& finding : report.findings) {
    const char* level = level_of(finding.severity);
    each(level, [&] { return Found{level, finding.what, finding.entry, finding.offset}; });
  }
  for (const ballast::ScanGlobal& global : report.globals) {
    if (global.verdict == ballast::Verdict::clean) continue;
    const char* level = level_of(global.verdict);
    each(level, [&] {
      const std::string times = global.count > 1 ? fmt::format(", {} times", grouped(global.count)) : "";
      return Found{level, fmt::format("names {}{}", global.name, times), global.entry, global.offset};
    });
  }
  for (const ballast::ScanCall& call : report.calls) {
    if (call.verdict == ballast::Verdict::clean) continue;
    const char* level = level_of(call.verdict);
    const std::span<const std::uint64_t> offsets =
        call.offsets.empty() ? std::span(&call.offset, 1) : std::span(call.offsets);
    for (const std::uint64_t offset : offsets)
      each(level, [&] { return Found{level, "calls " + call.name, call.entry, offset}; });
  }
}

// Of very many the worst, and how many there are besides: the others are never made.
std::vector<Found> findings_of(const ballast::ScanReport& report) {
  std::size_t total = 0;
  for_each_finding(report, [&](const char* /*level*/, const auto& /*make*/) { ++total; });
  std::vector<Found> list;
  const auto take = [&](std::string_view wanted) {
    for_each_finding(report, [&](const char* level, const auto& make) {
      if ((wanted.empty() || wanted == level) && list.size() < kMostFindings) list.push_back(make());
    });
  };
  if (total <= kMostFindings) {
    take({});
    return list;
  }
  for (const std::string_view level : {"danger", "unknown", "info"}) take(level);
  list.push_back(
      {"unknown",
       fmt::format("and {} more ('ballast scan --all' lists them)", grouped(total - kMostFindings)),
       {},
       0,
       false});
  return list;
}

// None of a folder or of several files, which have no one pickle to look into.
std::vector<ballast::PickleEntry> entries_of(const Document& document) {
  try {
    return ballast::pickle_entries(document.path());
  } catch (const ballast::Error&) {
    return {};
  }
}

std::optional<std::size_t> entry_number(const std::vector<ballast::PickleEntry>& entries,
                                        const std::string& name) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

namespace {

std::string scan_text(Document& document) {
  const ballast::ScanReport& report = document.scan();
  const std::vector<ballast::PickleEntry> entries = entries_of(document);
  Json findings = Json::array();
  for (const Found& found : findings_of(report)) {
    const auto entry = found.has_place ? entry_number(entries, found.entry) : std::nullopt;
    const std::string where =
        !found.has_place ? ""
        : found.entry.empty()
            ? fmt::format("byte {}", grouped(found.offset))
            : fmt::format("{}, byte {}", ballast::display(found.entry), grouped(found.offset));
    findings.push_back({{"level", found.level},
                        {"what", ballast::display(found.what)},
                        {"where", where},
                        {"entry", entry ? Json(*entry) : Json(nullptr)},
                        {"offset", entry ? Json(found.offset) : Json(nullptr)}});
  }
  Json list = Json::array();
  for (const ballast::PickleEntry& entry : entries)
    list.push_back({{"name", ballast::display(entry.name)}, {"bytes", entry.bytes}});
  return Json{
      {"verdict", name(report.verdict())}, {"findings", std::move(findings)}, {"entries", std::move(list)}}
      .dump();
}

}  // namespace

Response get_scan(const Call& call) {
  Document& document = call.document();
  return {.body = document.scan_answer([&] { return scan_text(document); })};
}

Response get_pickle(const Call& call) {
  Document& document = call.document();
  const auto entry = static_cast<std::size_t>(call.query.number("entry", 0, 0, INT32_MAX));
  const auto offset = static_cast<std::uint64_t>(call.query.number("offset", 0, 0, INT64_MAX));
  const std::vector<ballast::PickleEntry> entries = entries_of(document);
  if (entry >= entries.size()) throw Refused{404, "not-found", fmt::format("there is no pickle {}", entry)};
  const ballast::PickleLines lines =
      ballast::list_pickle(document.path(), entry, offset, page_of_query(call.query).limit);
  std::map<std::uint64_t, std::size_t> found;
  const std::vector<Found> findings = findings_of(document.scan());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].has_place && findings[i].entry == entries[entry].name)
      found.emplace(findings[i].offset, i);
  }
  Json rows = Json::array();
  for (const ballast::PickleLine& line : lines.lines) {
    const auto finding = found.find(line.offset);
    rows.push_back({{"offset", line.offset},
                    {"opcode", line.opcode},
                    {"argument", line.argument},
                    {"finding", finding == found.end() ? Json(nullptr) : Json(finding->second)}});
  }
  return json_response({{"entry", entry},
                        {"total_bytes", entries[entry].bytes},
                        {"next", lines.next ? Json(*lines.next) : Json(nullptr)},
                        {"rows", std::move(rows)}});
}

}  // namespace tool::view
