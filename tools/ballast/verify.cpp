// SPDX-License-Identifier: Apache-2.0
// ballast verify: is this file sound? Its structure (by opening it), and its values: NaN, infinities, weights
// that are all zero.
#include <optional>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/receipt.h"
#include "ballast/record_file.h"
#include "ballast/scan.h"
#include "ballast/stats.h"
#include "commands.h"
#include "selection.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  Selection selection;
  double max_abs = 0;
  bool allow_zeros = false;
  bool inert = false;
  std::string receipt;
};

struct Finding {
  std::optional<std::size_t> tensor;  // none: the file as a whole
  std::string kind;                   // stable word for JSON
  std::string heading;                // for people
  std::uint64_t count;
  std::string detail;
};

struct Checked {
  std::vector<ballast::Tensor> tensors;
  std::vector<std::string_view> names;
  std::vector<Finding> findings;
  std::vector<std::string> notes;
  std::uint64_t bytes = 0;
};

void judge(Checked& checked, std::size_t index, const ballast::TensorStats& stats,
           const VerifyOptions& options) {
  const auto of = [&](std::uint64_t count) {
    return fmt::format("{} of {} values", grouped(count), grouped(stats.count));
  };
  const auto add = [&](std::string kind, std::string heading, std::uint64_t count, std::string detail) {
    checked.findings.push_back({index, std::move(kind), std::move(heading), count, std::move(detail)});
  };
  if (stats.nan > 0) add("nan", "NaN", stats.nan, of(stats.nan));
  if (stats.inf > 0) add("inf", "Inf", stats.inf, of(stats.inf));
  if (stats.all_zero() && stats.count > 1 && !options.allow_zeros) {
    add("zero", "all zero", stats.zeros, fmt::format("{} values", grouped(stats.count)));
  }
  if (options.max_abs > 0 && stats.absmax() > options.max_abs) {
    add("large", "too large", 1, fmt::format("largest magnitude {:.6g}", stats.absmax()));
  }
}

// Data that begins at an odd place costs a copy wherever it is used; the file is still sound.
void note_alignment(Checked& checked) {
  std::uint64_t misaligned = 0;
  std::string first;
  for (std::size_t i = 0; i < checked.tensors.size(); ++i) {
    const ballast::Tensor& tensor = checked.tensors[i];
    const auto span = tensor.storage()->file_span();
    const std::uint64_t size = ballast::info(tensor.dtype()).bits / 8;
    if (!span || size < 2 || tensor.numel() == 0 || (span->offset + tensor.bit_offset() / 8) % size == 0)
      continue;
    if (misaligned++ == 0) first = ballast::quoted(checked.names[i]);
  }
  if (misaligned == 0) return;
  checked.notes.push_back(fmt::format(
      "{} not aligned to the element size in the file ({}{}): fine, but not usable without a copy",
      misaligned == 1 ? "1 tensor is" : grouped(misaligned) + " tensors are", first,
      misaligned == 1 ? "" : ", …"));
}

// Zip archives hold checksums, and ONNX models those of their external data; opening compares at most a
// pickle's.
void compare_checksums(Checked& checked, const ballast::Checkpoint& checkpoint) {
  const bool is_onnx = checkpoint.format == "onnx";
  if (checkpoint.format != "torch-zip" && checkpoint.format != "torchscript" && !is_onnx) return;
  try {
    const ballast::Checksums sums = ballast::check_integrity(checkpoint.path);
    // Models hardly ever have any: not worth a word.
    if (sums.without > 0 && (!is_onnx || sums.checked > 0))
      checked.notes.push_back(
          fmt::format("the file holds no checksum for {} of its data", human_bytes(sums.without)));
  } catch (const ballast::Error& error) {
    if (error.code() != ballast::Errc::bad_crc) throw;
    checked.findings.push_back({std::nullopt, "checksum", "checksum", 1, error.what()});
  }
}

// A record says what every tensor's bytes were.
void compare_record(Checked& checked, const ballast::Checkpoint& checkpoint,
                    const ballast::Progress& progress) {
  if (checkpoint.format != "record") return;
  for (const ballast::RecordFault& fault : ballast::check_record(checkpoint, progress)) {
    checked.findings.push_back(
        {std::nullopt, "checksum", "checksum", 1,
         fault.has_checksum
             ? fmt::format("tensor {}: XXH3 is {}, the record says {}", ballast::quoted(fault.name),
                           fault.found, fault.expected)
             : fmt::format("tensor {}: the record has no checksum for it", ballast::quoted(fault.name))});
  }
}

void compare_receipt(Session& session, Checked& checked, const VerifyOptions& options,
                     const std::string& path) {
  if (options.receipt.empty()) return;
  const ballast::Receipt receipt = ballast::read_receipt(options.receipt);
  ProgressBar bar = session.progress("receipt", path);
  const ballast::ReceiptCheck check = ballast::check_receipt(path, receipt, bar.callback());
  for (const std::string& problem : check.problems)
    checked.findings.push_back({std::nullopt, "receipt", "receipt", 1, problem});
  if (check.problems.empty())
    checked.notes.push_back(check.is_input ? "it is what the receipt's conversion read, bit for bit"
                                           : "it is what the receipt's conversion wrote, bit for bit");
}

Checked collect(const ballast::Checkpoint& checkpoint) {
  Checked checked;
  std::uint64_t without_data = 0;
  for (const ballast::Entry entry : checkpoint) {
    ballast::Tensor tensor = entry.tensor();
    if (!tensor.has_data()) {
      ++without_data;
      continue;
    }
    checked.bytes += entry.bytes;
    checked.names.push_back(entry.name);
    checked.tensors.push_back(std::move(tensor));
  }
  checked.notes = checkpoint.notes;
  if (without_data > 0)
    checked.notes.push_back(counted(without_data, "tensor") + " without data (shape only)");
  note_alignment(checked);
  return checked;
}

void print_findings(Session& session, const std::string& path, const Checked& checked) {
  const Terminal& terminal = session.stdout_terminal;
  const std::string scope =
      fmt::format("{}, {}", counted(checked.tensors.size(), "tensor"), human_bytes(checked.bytes));
  if (checked.findings.empty()) {
    if (!session.quiet)
      session.out.print("{}: {}: {}, every value finite\n", ballast::display(path),
                        terminal.paint("ok", Style::green), scope);
    return;
  }
  session.out.print("{}: {} in {}\n", ballast::display(path),
                    terminal.paint(counted(checked.findings.size(), "finding"), Style::red), scope);
  Table table({{"WHAT"}, {"TENSOR"}, {"DTYPE"}, {"SHAPE"}, {"HOW MANY"}});
  for (const Finding& finding : checked.findings) {
    const Cell what = {finding.heading, Style::red};
    if (!finding.tensor) {
      table.add({what, "(the file)", "", "", ballast::display(finding.detail, 4096)});
      continue;
    }
    const ballast::Tensor& tensor = checked.tensors[*finding.tensor];
    table.add({what,
               ballast::display(checked.names[*finding.tensor]),
               {ballast::info(tensor.dtype()).code, Style::cyan},
               to_string(tensor.shape()),
               finding.detail});
  }
  table.print(session.out, terminal, "  ");
}

void fill_json(Json& object, const ballast::Checkpoint& checkpoint, const Checked& checked) {
  object["format"] = checkpoint.format;
  object["tensors"] = checked.tensors.size();
  object["bytes"] = checked.bytes;
  object["clean"] = checked.findings.empty();
  Json findings = Json::array();
  for (const Finding& finding : checked.findings) {
    if (!finding.tensor) {
      findings.push_back(
          {{"name", nullptr}, {"kind", finding.kind}, {"count", finding.count}, {"message", finding.detail}});
      continue;
    }
    const ballast::Tensor& tensor = checked.tensors[*finding.tensor];
    findings.push_back({{"name", checked.names[*finding.tensor]},
                        {"dtype", ballast::info(tensor.dtype()).code},
                        {"shape", shape_array(tensor.shape())},
                        {"kind", finding.kind},
                        {"count", finding.count}});
  }
  object["findings"] = std::move(findings);
  object["notes"] = checked.notes;
}

int verify(Session& session, const VerifyOptions& options, const std::string& path, Json& object) {
  const ballast::Checkpoint checkpoint =
      select(session.open(path, {.io = ballast::Io::read, .inert = options.inert}), options.selection);
  Checked checked = collect(checkpoint);
  compare_checksums(checked, checkpoint);
  {
    ProgressBar bar = session.progress("checksums", path);
    compare_record(checked, checkpoint, bar.callback());
  }
  compare_receipt(session, checked, options, path);
  std::vector<ballast::TensorStats> stats;
  {
    ProgressBar bar = session.progress("verify", path);
    stats = ballast::stats(checked.tensors, bar.callback());
  }
  for (std::size_t i = 0; i < stats.size(); ++i) judge(checked, i, stats[i], options);
  if (session.json) {
    fill_json(object, checkpoint, checked);
  } else {
    print_findings(session, path, checked);
    session.out.flush();
    for (const std::string& note : checked.notes) session.note(note);
  }
  return checked.findings.empty() ? kFine : kFound;
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& command = add_command(app, session, "verify",
                                  "check structure and values: NaN, infinities, tensors that are all zero",
                                  "  ballast verify model.safetensors\n"
                                  "  ballast verify *.safetensors --quiet && echo all fine\n"
                                  "  ballast verify model.pt --max-abs 1e4 --json");
  command.add_option("FILE", options->files, "Checkpoints of any format")->required();
  add_selection_options(command, options->selection);
  command.add_flag("--allow-zeros", options->allow_zeros,
                   "A tensor of nothing but zeros is fine (one zero by itself always is)");
  command.add_option("--max-abs", options->max_abs, "A magnitude above this is a finding")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--receipt", options->receipt,
                  "Compare with the receipt of a conversion: the file's bytes and every tensor")
      ->type_name("R.json");
  command.add_flag("--inert", options->inert,
                   "Read past calls in a pickle that could run code; nothing is ever run");
  add_io_option(command, session);
  command.callback([&session, options] {
    session.run = [&session, options] {
      return for_each_file(session, options->files, [&](const std::string& path, Json& object) {
        return verify(session, *options, path, object);
      });
    };
  });
}

}  // namespace tool
