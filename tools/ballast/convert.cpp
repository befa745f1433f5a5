// SPDX-License-Identifier: Apache-2.0
// ballast convert: one file into another format or dtype, or with other names. Streams; the output appears
// whole or not at all.
#include <chrono>

#include "ballast/display.h"
#include "ballast/error.h"
#include "commands.h"
#include "rows.h"
#include "shards.h"
#include "steps.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

struct ConvertOptions {
  std::string in;
  std::string out;
  std::string format;
  std::string shard_size;  // "5GB"; empty: one file
  Steps steps;
  bool force = false;
  bool dry_run = false;
  bool inert = false;
};

// A PyTorch file that only becomes another PyTorch file keeps everything: epoch, optimizer and all.
bool keeps_everything(const ConvertOptions& options) {
  return options.steps.none() && options.shard_size.empty() &&
         ballast::format_for(options.out, options.format).starts_with("torch");
}

Totals totals_of(const ballast::Checkpoint& checkpoint) {
  return totals_of(rows_of(checkpoint));
}

void print_plan(Session& session, const ballast::Checkpoint& before, const ballast::Checkpoint& after) {
  Table table({{"NAME"}, {"DTYPE"}, {"SHAPE"}, {"SIZE", Align::right}});
  for (const ballast::Entry entry : after) {
    table.add({ballast::display(entry.name),
               {ballast::info(entry.dtype).code, Style::cyan},
               to_string(entry.shape),
               human_bytes(entry.bytes)});
  }
  table.print(session.out, session.stdout_terminal);
  session.out.print("from {}\n", totals_of(before).text());
  session.out.print("to   {}\n", totals_of(after).text());
}

Written save(Session& session, const ConvertOptions& options, const ballast::Checkpoint& checkpoint) {
  ProgressBar bar = session.progress("convert", options.out);
  if (!options.shard_size.empty()) {
    if (!options.format.empty() && options.format != "safetensors")
      throw ballast::Error(ballast::Errc::unsupported, "--shard-size", "shards are Safetensors files");
    return write_shards(checkpoint, options.out, parse_size(options.shard_size, "--shard-size"),
                        options.force, bar);
  }
  ballast::save(checkpoint, options.out,
                {.format = options.format, .overwrite = options.force, .progress = bar.callback()});
  return {.file = options.out, .bytes = size_of_file(options.out), .shards = {}};
}

std::string changes_of(const StepsReport& report) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", grouped(count), what);
  };
  add(report.cast, "cast");
  add(report.renamed, "renamed");
  add(report.dropped, "left out");
  return text;
}

Json result_object(const ConvertOptions& options, const ballast::Checkpoint& before,
                   const ballast::Checkpoint& after, const StepsReport& report) {
  const Totals totals = totals_of(after);
  return {{"schema", 1},
          {"input",
           {{"file", options.in},
            {"format", before.format},
            {"tensors", before.size()},
            {"bytes", before.total_bytes()}}},
          {"output",
           {{"file", options.out},
            {"tensors", totals.tensors},
            {"parameters", totals.parameters},
            {"bytes", totals.bytes}}},
          {"root", report.root.empty() ? Json(nullptr) : Json(report.root)},
          {"cast", report.cast},
          {"renamed", report.renamed},
          {"dropped", report.dropped},
          {"overflowed", report.overflowed->load()},
          {"dry_run", options.dry_run}};
}

void say_overflow(Session& session, const ConvertOptions& options, const StepsReport& report) {
  session.warn(fmt::format(
      "{}: {} too large for {} and not finite any more", ballast::display(options.out),
      report.overflowed->load() == 1 ? "1 value was" : grouped(report.overflowed->load()) + " values were",
      ballast::info(parse_dtype(options.steps.dtype)).code));
}

void say_notes(Session& session, const ballast::Checkpoint& before, const StepsReport& report) {
  for (const std::string& note : before.notes) session.note(note);
  if (!report.root.empty()) {
    session.note(
        fmt::format("took what lies under {}; --root chooses another place, --root '' takes everything",
                    ballast::quoted(report.root)));
  }
  for (const std::string& pattern : report.idle)
    session.warn(fmt::format("the pattern {} matched nothing", ballast::quoted(pattern)));
}

int convert(Session& session, const ConvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const ballast::Checkpoint before = session.open(options.in, {.map = true, .inert = options.inert});
  // Shards have names of their own, which the library looks at before it writes.
  if (!options.force && !options.dry_run && options.shard_size.empty() && exists(options.out)) {
    throw ballast::Error(ballast::Errc::already_exists, ballast::display(options.out),
                         "is there already; -f overwrites it");
  }
  StepsReport report;
  const ballast::Checkpoint after = keeps_everything(options) ? before : apply(before, options.steps, report);
  say_notes(session, before, report);
  Written written;
  if (!options.dry_run) written = save(session, options, after);
  const std::uint64_t overflowed = report.overflowed->load();
  if (session.json) {
    Json object = result_object(options, before, after, report);
    if (!options.dry_run) written.describe(object["output"]);
    object["notes"] = before.notes;
    write_document(session.out, object);
  } else if (options.dry_run) {
    print_plan(session, before, after);
  } else if (!session.quiet) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    session.out.print("wrote {}: {}{}, in {}\n", written.text(), totals_of(after).text(), changes_of(report),
                      human_seconds(seconds));
  }
  session.out.flush();
  if (overflowed > 0) say_overflow(session, options, report);
  return overflowed > 0 ? kFound : kFine;
}

}  // namespace

void add_convert(CLI::App& app, Session& session) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App& command = add_command(
      app, session, "convert", "write a file again in another format or dtype, or with other names",
      "  ballast convert model.pt model.safetensors\n"
      "  ballast convert model.safetensors half.safetensors --dtype bf16\n"
      "  ballast convert ckpt.pt encoder.safetensors --root state_dict --include '^encoder'\n"
      "  ballast convert old.safetensors new.safetensors --rename '^module\\.=' --dry-run\n"
      "  ballast convert big.pt out/model.safetensors --shard-size 5GB");
  command.add_option("IN", options->in, "The checkpoint to read: a file of any format, an index, a folder")
      ->required();
  command.add_option("OUT", options->out, "The file to write; its extension says the format")->required();
  command
      .add_option("--to", options->format,
                  "The format instead: safetensors, torch-zip, torch-legacy, bpk, mpk, mpk-gz, npz, npy")
      ->type_name("FORMAT");
  command
      .add_option("--shard-size", options->shard_size,
                  "Several Safetensors files of at most this much data each, and an index: 5GB, 500MiB")
      ->type_name("SIZE");
  command
      .add_option("--dtype", options->steps.dtype,
                  "Cast floating tensors: f32, f16, bf16, f64, f8_e4m3, f8_e5m2; others stay")
      ->type_name("DTYPE");
  command
      .add_option("--root", options->steps.root,
                  "Take what lies under this key, without the key (default: the state dict, found by itself)")
      ->type_name("KEY");
  command
      .add_option("--rules", options->steps.rules, "Rename, reshape, split and join as this JSON file says")
      ->type_name("FILE");
  command
      .add_option("--rename", options->steps.rename,
                  "Replace every match of RE in names, rules in order; $1 is a group")
      ->type_name("RE=TO")
      ->allow_extra_args(false);
  add_selection_options(command, options->steps.selection);
  command.add_flag("-f,--force", options->force, "Overwrite OUT");
  command.add_flag("-n,--dry-run", options->dry_run, "Show what OUT would hold, write nothing");
  command.add_flag("--inert", options->inert,
                   "Read past calls in a pickle that could run code; nothing is ever run");
  command.callback(
      [&session, options] { session.run = [&session, options] { return convert(session, *options); }; });
}

}  // namespace tool
