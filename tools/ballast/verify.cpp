// SPDX-License-Identifier: Apache-2.0
// ballast verify: is this file sound? Its structure (by opening it), its checksums, and its values.
#include "ballast/verify.h"

#include "ballast/error.h"
#include "commands.h"
#include "state_dict.h"
#include "steps.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

using ballast::Fault;
using ballast::VerifyFinding;
using ballast::VerifyReport;

struct VerifyArguments {
  std::vector<std::string> files;
  StepArguments steps;
  ballast::VerifyOptions options;
};

std::string heading(Fault fault) {
  if (fault == Fault::nan) return "NaN";
  if (fault == Fault::inf) return "Inf";
  if (fault == Fault::zero) return "all zero";
  if (fault == Fault::large) return "too large";
  return std::string(name(fault));
}

std::string how_many(const VerifyFinding& finding) {
  if (finding.kind == Fault::nan || finding.kind == Fault::inf)
    return fmt::format("{} of {} values", grouped(finding.count), grouped(finding.of));
  if (finding.kind == Fault::zero) return grouped(finding.count) + " values";
  return ballast::display(finding.detail, 4096);
}

void print_findings(Session& session, const std::string& path, const VerifyReport& report) {
  const Terminal& terminal = session.stdout_terminal;
  const std::string scope =
      fmt::format("{}, {}", counted(report.tensors, "tensor"), human_bytes(report.bytes));
  if (report.clean()) {
    if (!session.quiet)
      session.out.print("{}: {}: {}, every value finite\n", ballast::display(path),
                        terminal.paint("ok", Style::green), scope);
    return;
  }
  session.out.print("{}: {} in {}\n", ballast::display(path),
                    terminal.paint(counted(report.findings.size(), "finding"), Style::red), scope);
  Table table({{"WHAT"}, {"TENSOR"}, {"DTYPE"}, {"SHAPE"}, {"HOW MANY"}});
  for (const VerifyFinding& finding : report.findings) {
    const Cell what = {heading(finding.kind), Style::red};
    if (finding.name.empty()) {
      table.add({what, "(the file)", "", "", how_many(finding)});
      continue;
    }
    table.add({what,
               ballast::display(finding.name),
               {ballast::info(finding.dtype).code, Style::cyan},
               to_string(finding.shape),
               how_many(finding)});
  }
  table.print(session.out, terminal, "  ");
}

void write_json(JsonStream& json, const VerifyReport& report) {
  json.member("format", report.format.name()).member("tensors", report.tensors).member("bytes", report.bytes);
  json.member("clean", report.clean()).key("findings").begin_rows();
  for (const VerifyFinding& finding : report.findings) {
    const bool is_of_a_tensor = !finding.name.empty();
    json.begin_object().key("name");
    if (is_of_a_tensor)
      json.value(finding.name);
    else
      json.value(nullptr);
    json.member("kind", name(finding.kind)).member("count", finding.count).member("message", finding.detail);
    if (is_of_a_tensor) {
      json.member("dtype", ballast::info(finding.dtype).code).key("shape");
      json.value(ballast::ShapeView(finding.shape));
    }
    json.end();
  }
  json.end().member("notes", report.notes);
}

int verify(Session& session, const VerifyArguments& arguments, const std::string& path, JsonStream& json) {
  session.about_to_read(path);
  ballast::VerifyOptions options = arguments.options;
  set_steps(options, steps_of(arguments.steps));
  options.io = session.io_or(options.io);
  options.expansion = session.expansion;
  const VerifyReport report = [&] {
    ProgressBar bar = session.progress("verify", path);
    options.progress = bar.callback();
    return ballast::verify(path, options);
  }();
  if (session.json) {
    write_json(json, report);
  } else {
    print_findings(session, path, report);
    session.out.flush();
    for (const std::string& note : report.notes) session.note(note);
  }
  return report.clean() ? kFine : kFound;
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App& command =
      add_command(app, session, "verify",
                  "check structure, checksums and values: NaN, infinities, tensors that are all zero",
                  "  ballast verify model.safetensors\n"
                  "  ballast verify *.safetensors --quiet && echo all fine\n"
                  "  ballast verify model.pt --max-abs 1e4 --json");
  command.add_option("FILE", arguments->files, "Checkpoints of any format")->required();
  add_step_options(command, arguments->steps, kEverything);
  command.add_flag("--allow-zeros", arguments->options.allow_zeros,
                   "A tensor of nothing but zeros is fine (one zero by itself always is)");
  command.add_option("--max-abs", arguments->options.max_abs, "A magnitude above this is a finding")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--receipt", arguments->options.receipt,
                  "Compare with the receipt of a conversion: the file's bytes and every tensor")
      ->type_name("FILE");
  add_inert_option(command, arguments->options.inert);
  add_io_option(command, session);
  command.callback([&session, arguments] {
    session.run = [&session, arguments] {
      return for_each_file(session, arguments->files, [&](const std::string& path, JsonStream& json) {
        return verify(session, *arguments, path, json);
      });
    };
  });
}

}  // namespace tool
