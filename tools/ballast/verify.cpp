// SPDX-License-Identifier: Apache-2.0
// ballast verify: is this file sound? Its structure (by opening it), its checksums, and its values. Or, with
// --signature: is it what was signed?
#include "ballast/verify.h"

#include <algorithm>
#include <map>

#include "ballast/error.h"
#include "commands.h"
#include "fail.h"
#include "fold.h"
#include "help.h"
#include "rows.h"
#include "signature.h"
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
  FoldChoice fold;
  std::string signature;
  ballast::SignatureOptions signed_by;
};

// Findings that differ only in a number of the tensor's name, as one.
struct FindingRow {
  VerifyFinding finding;  // its counts are sums
  std::uint64_t tensors = 1;
};

std::vector<FindingRow> finding_rows(const std::vector<VerifyFinding>& findings, bool fold) {
  std::vector<FindingRow> rows;
  std::map<std::string, std::size_t> seen;
  for (const VerifyFinding& finding : findings) {
    const bool counts =
        finding.kind == Fault::nan || finding.kind == Fault::inf || finding.kind == Fault::zero;
    if (fold && counts) {  // what others say is about one tensor
      const auto [found, is_new] =
          seen.emplace(fmt::format("{}\n{}\n{} {}", name(finding.kind), folded_name(finding.name),
                                   ballast::info(finding.dtype).code, to_string(finding.shape)),
                       rows.size());
      if (!is_new) {
        FindingRow& row = rows[found->second];
        row.finding.name = folded_name(finding.name);
        row.finding.count += finding.count;
        row.finding.of += finding.of;
        row.finding.first.reset();
        ++row.tensors;
        continue;
      }
    }
    rows.push_back({finding});
  }
  return rows;
}

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

constexpr std::size_t kColumns = 5;

// FIRST, the index of the first value that is not finite, has a column where there is one.
Table table_of(const std::vector<FindingRow>& rows) {
  std::vector<Column> columns = {
      {"TENSOR"}, {"WHAT"}, {"DTYPE", Align::left, true}, {"SHAPE", Align::left, true}, {"HOW MANY"}};
  if (std::ranges::any_of(rows, [](const FindingRow& row) { return row.finding.first.has_value(); }))
    columns.insert(columns.end() - 1, {"FIRST", Align::left, true});
  return Table(std::move(columns));
}

std::vector<Cell> cells_of(const FindingRow& row, bool has_first, const Terminal& terminal) {
  const VerifyFinding& finding = row.finding;
  const bool is_file = finding.name.empty();
  std::vector<Cell> cells = {
      is_file ? "(the file)" : ballast::display(finding.name) + times(row.tensors, terminal),
      {heading(finding.kind), Style::red},
      {is_file ? std::string_view() : ballast::info(finding.dtype).code, Style::cyan},
      is_file ? "" : to_string(finding.shape)};
  if (has_first)
    cells.emplace_back(finding.first ? index_text(*finding.first, finding.shape, finding.of) : "");
  cells.emplace_back(how_many(finding));
  return cells;
}

void print_findings(Session& session, const std::string& path, const VerifyReport& report,
                    const FoldChoice& choice) {
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
  const bool fold = choice.holds(session, report.findings.size());
  const std::vector<FindingRow> rows = finding_rows(report.findings, fold);
  Table table = table_of(rows);
  for (const FindingRow& row : rows) table.add(cells_of(row, table.columns() > kColumns, terminal));
  table.print(session.out, terminal, "  ");
  session.out.flush();
  if (rows.size() < report.findings.size()) choice.say(session);
  say_left_out(session, table);
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
    if (finding.first) json.member("first", *finding.first);
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
    print_findings(session, path, report, arguments.fold);
    session.out.flush();
    for (const std::string& note : report.notes) session.note(note);
  }
  return report.clean() ? kFine : kFound;
}

// Two questions in one command: options of the one mean nothing to the other.
void add_signature_options(CLI::App& command, VerifyArguments& arguments) {
  CLI::Option* signature =
      command
          .add_option("--signature", arguments.signature,
                      "Is FILE, a folder or a file, what was signed? Nothing else is looked at")
          ->type_name("FILE");
  for (CLI::Option* option : command.get_options()) {
    const bool is_own = option->get_group() != kCommonOptions && !option->get_positional();
    if (is_own && option != signature) option->excludes(signature);
  }
  const std::size_t before = command.get_options().size();
  ballast::SignatureOptions& options = arguments.signed_by;
  CLI::Option* key = command.add_option("--key", options.key, "The public key it was signed with, in PEM")
                         ->type_name("FILE");
  command
      .add_option("--certificate-chain,--chain", options.certificate_chain,
                  "Or the certificates that are trusted, in PEM; again for more")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->excludes(key);
  add_model_options(command, options);
  command.add_flag("--ignore-unsigned", options.ignore_unsigned, "Files that nobody signed may be there");
  const std::vector<CLI::Option*> all = command.get_options();
  for (auto at = all.begin() + static_cast<std::ptrdiff_t>(before); at != all.end(); ++at)
    (*at)->needs(signature);
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App& command =
      add_command(app, session, "verify",
                  "check structure, checksums and values: NaN, infinities, tensors that are all zero",
                  "  ballast verify model.safetensors\n"
                  "  ballast verify *.safetensors --quiet && echo all fine\n"
                  "  ballast verify model.pt --max-abs 1e4 --json\n"
                  "  ballast verify model.safetensors --receipt model.json --tensors-only\n"
                  "  ballast verify folder --signature folder/model.sig --key pub.pem");
  command.add_option("FILE", arguments->files, "Checkpoints of any format")->required();
  add_step_options(command, arguments->steps, kEverything);
  command.add_flag("--allow-zeros", arguments->options.allow_zeros,
                   "A tensor of nothing but zeros is fine (one zero by itself always is)");
  command.add_option("--max-abs", arguments->options.max_abs, "A magnitude above this is a finding")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  CLI::Option* receipt =
      command
          .add_option("--receipt", arguments->options.receipt,
                      "Compare with the receipt of a conversion: the file's bytes and every tensor")
          ->type_name("FILE");
  command
      .add_flag("--tensors-only", arguments->options.tensors_only,
                "Of the receipt the tensors alone: the metadata, the format and the order may be others")
      ->needs(receipt);
  add_fold_options(command, arguments->fold);
  add_inert_option(command, arguments->options.inert);
  add_io_option(command, session);
  add_signature_options(command, *arguments);
  command.callback([&session, arguments] {
    session.run = [&session, arguments] {
      if (!arguments->signature.empty()) {
        if (arguments->files.size() != 1)
          fail(ballast::Errc::invalid_argument, "--signature", "is of one model, and there are {}",
               arguments->files.size());
        return verify_signature(session, arguments->files.front(), arguments->signature,
                                arguments->signed_by);
      }
      return for_each_file(session, arguments->files, [&](const std::string& path, JsonStream& json) {
        return verify(session, *arguments, path, json);
      });
    };
  });
}

}  // namespace tool
