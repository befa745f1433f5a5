// SPDX-License-Identifier: Apache-2.0
// ballast scan: what loading a file would do elsewhere. The verdict is that of the parser that loads files
// here; nothing is run.
#include "ballast/scan.h"

#include <map>

#include "ballast/error.h"
#include "commands.h"
#include "signals.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

using ballast::ScanReport;
using ballast::Severity;
using ballast::Verdict;

struct Arguments {
  std::vector<std::string> files;
  bool all = false;
  bool no_checksums = false;
};

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::note:
      return Style::cyan;
    case Severity::warning:
      return Style::yellow;
    case Severity::danger:
      return Style::red;
  }
  return Style::plain;
}

Style style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::clean:
      return Style::green;
    case Verdict::unknown:
      return Style::yellow;
    case Verdict::danger:
      return Style::red;
  }
  return Style::plain;
}

std::string place(const std::string& entry, std::uint64_t offset) {
  return entry.empty() ? fmt::format("byte {}", grouped(offset))
                       : fmt::format("{}, byte {}", ballast::display(entry, 80), grouped(offset));
}

using Calls = std::map<std::pair<std::string_view, std::string_view>, const ballast::ScanCall*>;

Calls calls_of(const ScanReport& report) {
  Calls calls;
  for (const ballast::ScanCall& call : report.calls) calls.try_emplace({call.entry, call.name}, &call);
  return calls;
}

void print_findings(Session& session, const ScanReport& report) {
  Table table({{"SEVERITY"}, {"CODE"}, {"WHERE"}, {"WHAT"}});
  for (const ballast::ScanFinding& finding : report.findings) {
    table.add({{name(finding.severity), style_of(finding.severity)},
               name(finding.code),
               place(finding.entry, finding.offset),
               ballast::display(finding.what)});
  }
  if (!table.empty()) table.print(session.out, session.stdout_terminal, "  ");
}

void print_globals(Session& session, const ScanReport& report, bool all) {
  Table table({{"GLOBAL"}, {"VERDICT"}, {"NAMED", Align::right}, {"CALLED", Align::right}, {"FIRST AT"}});
  Calls calls = calls_of(report);
  const auto add = [&](std::string_view what, Verdict verdict, std::uint64_t named, std::uint64_t called,
                       const std::string& where) {
    if (verdict == Verdict::clean && !all) return;
    table.add({ballast::display(what, 120),
               {name(verdict), style_of(verdict)},
               grouped(named),
               grouped(called),
               where});
  };
  for (const ballast::ScanGlobal& global : report.globals) {
    const auto call = calls.find({global.entry, global.name});
    const bool called = call != calls.end();
    add(global.name, called ? std::max(global.verdict, call->second->verdict) : global.verdict, global.count,
        called ? call->second->count : 0, place(global.entry, global.offset));
    if (called) calls.erase(call);
  }
  for (const auto& [key, call] : calls)  // reached through something else
    add(call->name, call->verdict, 0, call->count, place(call->entry, call->offset));
  if (!table.empty()) table.print(session.out, session.stdout_terminal, "  ");
}

void print_report(Session& session, const std::string& path, const ScanReport& report, bool all) {
  const std::string verdict =
      session.stdout_terminal.paint(name(report.verdict()), style_of(report.verdict()));
  const std::string_view format = report.format ? report.format.name() : "unknown format";
  if (session.quiet && report.clean()) return;
  session.out.print("{}: {}: {}, {} named, {}\n", ballast::display(path), verdict, format,
                    counted(report.globals.size(), "global"), counted(report.findings.size(), "finding"));
  print_findings(session, report);
  print_globals(session, report, all);
}

void write_json(JsonStream& json, const ScanReport& report) {
  json.member("format", report.format.name()).member("verdict", name(report.verdict()));
  json.member("clean", report.clean()).key("findings").begin_rows();
  for (const ballast::ScanFinding& f : report.findings) {
    json.begin_object().member("severity", name(f.severity)).member("code", name(f.code));
    json.member("what", f.what).member("entry", f.entry).member("offset", f.offset).end();
  }
  json.end().key("globals").begin_rows();
  for (const ballast::ScanGlobal& g : report.globals) {
    json.begin_object().member("name", g.name).member("verdict", name(g.verdict));
    json.member("count", g.count).member("entry", g.entry).member("offset", g.offset).end();
  }
  json.end().key("calls").begin_rows();
  for (const ballast::ScanCall& c : report.calls) {
    json.begin_object().member("name", c.name).member("verdict", name(c.verdict)).member("count", c.count);
    json.member("entry", c.entry).member("offset", c.offset).member("offsets", c.offsets).end();
  }
  json.end();
}

int scan(Session& session, const Arguments& options, const std::string& path, JsonStream& json) {
  session.about_to_read(path);
  const ScanReport report = ballast::scan(path, !options.no_checksums);
  if (session.json)
    write_json(json, report);
  else
    print_report(session, path, report, options.all);
  return report.clean() ? kFine : kFound;
}

}  // namespace

void add_scan(CLI::App& app, Session& session) {
  auto options = std::make_shared<Arguments>();
  CLI::App& command = add_command(
      app, session, "scan",
      "find what could run code when Python loads the file, and tricks of its container",
      "  ballast scan download.pt\n"
      "  ballast scan *.bin --quiet || echo do not load these\n"
      "  ballast scan model.pt --all\n"
      "\n"
      "clean (exit 0): every global of its pickles has a role and every call fits it. unknown (exit 1):\n"
      "something else is named, called or hidden, so that Python would run code nobody has looked at.\n"
      "danger (exit 1): it is known to run code. What is no model file is exit 2.");
  command.add_option("FILE", options->files, "Files of any format")->required();
  command.add_flag("-a,--all", options->all, "List the clean globals too");
  command.add_flag("--no-checksums", options->no_checksums, "Do not read the data to compare checksums");
  command.callback([&session, options] {
    session.run = [&session, options] {
      return for_each_file(session, options->files, [&](const std::string& path, JsonStream& json) {
        return scan(session, *options, path, json);
      });
    };
  });
}

}  // namespace tool
