// SPDX-License-Identifier: Apache-2.0
#include "signature.h"

#include "ballast/error.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

std::string files_and_bytes(const ballast::SignatureReport& report) {
  return fmt::format("{}, {}", counted(report.files, "file"), human_bytes(report.bytes));
}

void print_report(Session& session, const std::string& model, const ballast::SignatureReport& report) {
  const Terminal& terminal = session.stdout_terminal;
  if (!report.clean()) {
    session.out.print("{}: {}; signed were {} by {}\n", ballast::display(model),
                      terminal.paint("not what was signed", Style::red), counted(report.files, "file"),
                      ballast::display(report.signer));
    Table table({{"WHAT"}, {"FILE"}});
    for (const ballast::SignatureFinding& finding : report.findings)
      table.add({{std::string(name(finding.kind)), Style::red}, ballast::display(finding.name)});
    table.print(session.out, terminal, "  ");
  } else if (!session.quiet) {
    session.out.print("{}: {}: {}, as signed by {}\n", ballast::display(model),
                      terminal.paint("ok", Style::green), files_and_bytes(report),
                      ballast::display(report.signer));
  }
  session.out.flush();
}

}  // namespace

void add_model_options(CLI::App& command, ballast::SignatureOptions& options) {
  command
      .add_option("--ignore", options.ignore,
                  "A file or folder of the model that does not count; again for more")
      ->type_name("PATH")
      ->allow_extra_args(false);
  command.add_flag("!--no-ignore-git", options.ignore_git,
                   ".git, .gitattributes, .github and .gitignore at its top count, too");
  command.add_flag("--allow-symlinks", options.allow_symlinks,
                   "Links to files count as files; without it a link is refused");
}

void describe(Json& document, const ballast::SignatureReport& report) {
  document["model"] = report.model;
  document["signer"] = report.signer;
  document["files"] = report.files;
  document["bytes"] = report.bytes;
  document["ignored"] = report.ignored;
  document["notes"] = report.notes;
}

int verify_signature(Session& session, const std::string& model, const std::string& signature,
                     ballast::SignatureOptions options) {
  const ballast::SignatureReport report = [&] {
    ProgressBar bar = session.progress("verify", model);
    options.progress = bar.callback();
    return ballast::verify_signature(model, signature, options);
  }();
  if (session.json) {
    Json document = {{"schema", 1}, {"file", model}, {"signature", signature}, {"clean", report.clean()}};
    describe(document, report);
    document["findings"] = Json::array();
    for (const ballast::SignatureFinding& finding : report.findings)
      document["findings"].push_back({{"name", finding.name}, {"kind", name(finding.kind)}});
    write_document(session.out, document);
  } else {
    print_report(session, model, report);
    if (!report.ignored.empty())
      session.note(fmt::format("not signed, and not looked at: {}",
                               ballast::display(fmt::format("{}", fmt::join(report.ignored, ", ")))));
    for (const std::string& note : report.notes) session.note(note);
  }
  return report.clean() ? kFine : kFound;
}

}  // namespace tool
