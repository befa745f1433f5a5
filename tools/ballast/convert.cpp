// SPDX-License-Identifier: Apache-2.0
// ballast convert: one file into another format or dtype, or with other names. Streams; the output appears
// whole or not at all.
#include "ballast/convert.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "ballast/error.h"
#include "commands.h"
#include "rows.h"
#include "state_dict.h"
#include "steps.h"
#include "table.h"
#include "text.h"
#include "written.h"

namespace tool {
namespace {

struct Arguments {
  std::string in;
  std::string out;
  std::string shard_size;  // "5GB"; empty: one file
  std::string quantize;
  std::string pack;
  std::string adapter;
  std::string layout;
  std::vector<std::string> layers;
  std::vector<std::string> meta;
  StepArguments steps;
  bool dry_run = false;
  bool debug_keys = false;
  ballast::ConvertOptions options;
};

std::vector<ballast::LayerIs> layers_of(const std::vector<std::string>& texts) {
  std::vector<ballast::LayerIs> layers;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      throw ballast::Error(ballast::Errc::invalid_argument, "--layers",
                           fmt::format("{} is not PATTERN=KIND", ballast::quoted(text)));
    layers.push_back({text.substr(0, equals), ballast::layer_kind_named(text.substr(equals + 1))});
  }
  return layers;
}

ballast::ConvertOptions options_of(const Arguments& arguments) {
  ballast::ConvertOptions options = arguments.options;
  set_steps(options, steps_of(arguments.steps));
  if (!arguments.adapter.empty()) options.adapter = ballast::adapter_named(arguments.adapter);
  if (!arguments.layout.empty()) options.layout = ballast::adapter_named(arguments.layout);
  options.layers = layers_of(arguments.layers);
  options.meta = parse_meta(arguments.meta);
  if (arguments.quantize == "int8") options.quantize = ballast::Quantize::int8;
  options.pack = pack_of(arguments.pack);
  if (!arguments.shard_size.empty()) options.shard_bytes = parse_size(arguments.shard_size, "--shard-size");
  return options;
}

Totals totals_of(const ballast::Checkpoint& checkpoint) {
  return totals_of(rows_of(checkpoint));
}

void print_plan(Session& session, const ballast::Checkpoint& before, const ballast::Checkpoint& after) {
  Table table({{"NAME"}, {"DTYPE"}, {"SHAPE"}, {"SIZE", Align::right}});
  table.stream(session.out, session.stdout_terminal);
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

Written written(const Arguments& arguments, const ballast::Converted& done) {
  if (!done.shards.files.empty()) return written_shards(done.shards);
  return {.file = arguments.out, .bytes = size_of_file(arguments.out), .shards = {}};
}

std::uint64_t renamed(const ballast::Converted& done) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < done.origins.size(); ++i)
    count += done.checkpoint[i].name != done.origins[i] ? 1U : 0U;
  return count;
}

std::uint64_t dropped(const ballast::Converted& done) {
  return done.before.size() - std::min(done.before.size(), done.checkpoint.size());
}

std::string changes_of(const ballast::Converted& done) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", grouped(count), what);
  };
  add(done.cast, "cast");
  add(done.quantized.size(), "quantized");
  add(renamed(done), "renamed");
  add(dropped(done), "left out");
  return text;
}

Json output_object(const Arguments& arguments, const ballast::Converted& done) {
  const Totals totals = totals_of(done.checkpoint);
  Json output = {{"file", arguments.out},
                 {"tensors", totals.tensors},
                 {"parameters", totals.parameters},
                 {"bytes", totals.bytes}};
  if (!arguments.dry_run) written(arguments, done).describe(output);
  return output;
}

void write_keys(JsonStream& json, const ballast::Converted& done) {
  json.begin_rows();
  for (std::size_t i = 0; i < done.checkpoint.size(); ++i) {
    const ballast::Entry entry = done.checkpoint[i];
    json.begin_object().member("original", done.origins[i]).member("name", entry.name);
    json.member("dtype", ballast::info(entry.dtype).code).member("shape", entry.shape).end();
  }
  json.end();
}

void write_json(Session& session, const Arguments& arguments, const ballast::Converted& done) {
  JsonStream json(session.out);
  json.begin_object().member("schema", 1).key("input").begin_object();
  json.member("file", arguments.in).member("format", done.before.format.name());
  json.member("tensors", done.before.size()).member("bytes", done.before.total_bytes()).end();
  json.member("output", output_object(arguments, done));
  json.member("root", done.root.empty() ? Json(nullptr) : Json(done.root)).member("cast", done.cast);
  json.member("renamed", renamed(done)).member("dropped", dropped(done)).member("unmatched", done.unmatched);
  json.member("rounded", done.count->rounded.load()).member("overflowed", done.count->overflowed.load());
  json.key("quantized").begin_rows();
  for (const ballast::QuantizedTensor& tensor : done.quantized) {
    json.begin_object().member("name", tensor.name).member("axis", tensor.axis);
    json.member("max_error", tensor.max_error).member("snr_db", tensor.snr).end();
  }
  json.end().member("dry_run", arguments.dry_run);
  if (arguments.debug_keys) write_keys(json.key("keys"), done);
  json.member("notes", done.before.notes);
  json.finish();
}

void print_quantized(Session& session, const ballast::Converted& done) {
  if (done.quantized.empty()) return;
  Table table({{"QUANTIZED"}, {"AXIS", Align::right}, {"MAX ERROR", Align::right}, {"SNR", Align::right}});
  for (const ballast::QuantizedTensor& tensor : done.quantized) {
    table.add({ballast::display(tensor.name), std::to_string(tensor.axis),
               fmt::format("{:.3g}", tensor.max_error),
               std::isinf(tensor.snr) ? std::string("exact") : fmt::format("{:.1f} dB", tensor.snr)});
  }
  table.print(session.out, session.stdout_terminal);
}

void print_done(Session& session, const Arguments& arguments, const ballast::Converted& done,
                double seconds) {
  print_quantized(session, done);
  session.out.print("wrote {}: {}{}, in {}\n", written(arguments, done).text(),
                    totals_of(done.checkpoint).text(), changes_of(done), human_seconds(seconds));
  if (done.cast > 0) session.out.line(counted(done.count->rounded.load(), "value") + " rounded");
}

// What a cast makes of a number that is too large: infinity where the dtype has one.
std::string_view stands_for_overflow(std::optional<ballast::DType> dtype) {
  if (!dtype) return "infinity or its largest value";
  const double value = ballast::Tensor::from({std::numeric_limits<double>::max()}, {1}, *dtype).item();
  return std::isinf(value) ? "infinity" : std::isnan(value) ? "NaN" : "its largest value";
}

void say_notes(Session& session, const ballast::Converted& done) {
  for (const std::string& note : done.before.notes) session.note(note);
  note_found(session, done.before.path, done.root);
  warn_unmatched(session, done.unmatched);
}

int convert(Session& session, const Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  session.about_to_read(arguments.in);
  if (!arguments.steps.rules.empty())
    ballast::require_apart({arguments.in, arguments.steps.rules}, {arguments.out});
  if (!arguments.steps.rules.empty() && !arguments.options.receipt.empty())
    ballast::require_apart({arguments.in, arguments.steps.rules}, {arguments.options.receipt});
  ballast::ConvertOptions options = options_of(arguments);
  options.io = session.io_or(options.io);
  options.expansion = session.expansion;
  options.passphrase_file = passphrase_for(session, arguments.out, options.recipients);
  // Shards have names of their own, which the library looks at before it writes.
  if (!arguments.dry_run && options.shard_bytes == 0) require_free(arguments.out, options.overwrite);
  const ballast::Converted done = [&] {
    if (arguments.dry_run) return ballast::plan_conversion(arguments.in, arguments.out, options);
    ProgressBar bar = session.progress("convert", arguments.out);
    options.progress = bar.callback();
    return ballast::convert(arguments.in, arguments.out, options);
  }();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say_notes(session, done);
  if (arguments.debug_keys && !session.json)
    session.out.write(ballast::debug_keys(done.checkpoint, done.origins));
  if (session.json) {
    write_json(session, arguments, done);
  } else if (arguments.dry_run) {
    print_plan(session, done.before, done.checkpoint);
    print_quantized(session, done);
  } else if (!session.quiet) {
    print_done(session, arguments, done, seconds);
  }
  session.out.flush();
  const std::uint64_t overflowed = done.count->overflowed;
  if (overflowed == 0) return kFine;
  const std::optional<ballast::DType> dtype = options.dtype.dtype();
  session.warn(fmt::format("{}: {} too large for {}; {} stands there now", ballast::display(arguments.out),
                           overflowed == 1 ? "1 value was" : grouped(overflowed) + " values were",
                           !dtype ? "the dtype a rule casts to" : ballast::info(*dtype).code,
                           stands_for_overflow(dtype)));
  return kFound;
}

}  // namespace

void add_convert(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = add_command(
      app, session, "convert", "write a file again in another format or dtype, or with other names",
      "  ballast convert model.pt model.safetensors\n"
      "  ballast convert model.safetensors bf16.safetensors --dtype bf16\n"
      "  ballast convert ckpt.pt encoder.safetensors --root state_dict --include '^encoder'\n"
      "  ballast convert old.safetensors new.safetensors --rename '^module\\.=' --dry-run\n"
      "  ballast convert old.pt new.safetensors --rename '^net\\.=' --dry-run --debug-keys\n"
      "  ballast convert model.pt model.safetensors --meta license=apache-2.0\n"
      "  ballast convert model.pt model.bpk --layers 'tok$=embedding'\n"
      "  ballast convert big.pt out/model.safetensors --shard-size 5GB\n"
      "  ballast convert model.pt model.safetensors --pack small\n"
      "  ballast convert model.pt model.safetensors.age --recipient age1…");
  command.add_option("IN", arguments->in, "The checkpoint to read: a file of any format, an index, a folder")
      ->required();
  command.add_option("OUT", arguments->out, "The file to write; its extension says the format")->required();
  add_format_option(command, arguments->options.format);
  command
      .add_option("--shard-size", arguments->shard_size,
                  "Several Safetensors files of at most this much data each, and an index: 5GB, 500MiB")
      ->type_name("SIZE");
  add_pack_option(command, arguments->pack);
  add_recipient_option(command, arguments->options.recipients);
  add_step_options(command, arguments->steps,
                   "the state dict, found by itself, but everything of a .pt that becomes a .pt and is not "
                   "changed otherwise; '' for everything");
  command
      .add_flag("--state-dict", arguments->options.state_dict,
                "From .pt to .pt, too, the state dict alone, found by itself")
      ->excludes(command.get_option("--root"));
  command
      .add_option("--layout", arguments->layout,
                  "Whose names and layouts OUT gets: pytorch, burn, native; else Burn's in Burn's formats, "
                  "and IN's in others")
      ->type_name("WHOSE")
      ->check(CLI::IsMember({"pytorch", "burn", "native"}));
  command
      .add_option("--adapter", arguments->adapter,
                  "Whose names and layouts IN has, where it does not say: pytorch, burn, native, flax, keras")
      ->type_name("WHOSE")
      ->check(CLI::IsMember({"pytorch", "burn", "native", "flax", "keras"}));
  command
      .add_option(
          "--layers", arguments->layers,
          "For --layout: layers whose path RE matches are linear, embedding, rms_norm, prelu, none, …")
      ->type_name("RE=KIND")
      ->allow_extra_args(false);
  command
      .add_option("--like", arguments->options.like,
                  "For --layout: a file of the same model as OUT shall be, by its names and shapes")
      ->type_name("FILE");
  command
      .add_option("--quantize", arguments->quantize,
                  "int8: weights as 8-bit integers with a scale for each channel")
      ->type_name("SCHEME")
      ->check(CLI::IsMember({"int8"}));
  add_meta_option(command, arguments->meta);
  add_receipt_option(command, arguments->options.receipt);
  command.add_flag("--simplify", arguments->options.simplify,
                   "To .pt: write foreign classes as the dicts, lists, numbers and text they are made of");
  command
      .add_option("--burn", arguments->options.burn,
                  "To .mpk and .bpk: the oldest Burn that must read OUT (0.20); else the newest")
      ->type_name("VERSION");
  add_no_check_option(command, arguments->options.check);
  command.add_flag("-f,--force", arguments->options.overwrite, "Overwrite OUT, and the receipt");
  command.add_flag("-n,--dry-run", arguments->dry_run, "Show what OUT would hold, write nothing");
  command.add_flag("--debug-keys", arguments->debug_keys,
                   "Print every key before and after, with shape and dtype");
  add_inert_option(command, arguments->options.inert);
  add_io_option(command, session);
  command.callback([&session, arguments] {
    session.run = [&session, arguments] { return convert(session, *arguments); };
  });
}

}  // namespace tool
