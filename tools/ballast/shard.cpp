// SPDX-License-Identifier: Apache-2.0
// ballast shard: a checkpoint as Safetensors files of a limited size, with an index.
#include <chrono>

#include "ballast/config.h"
#include "ballast/convert.h"
#include "ballast/steps.h"
#include "commands.h"
#include "state_dict.h"
#include "written.h"

namespace tool {
namespace {

struct ShardOptions {
  std::string in;
  std::string out;
  std::string size = "5GB";
  std::vector<std::string> meta;
  std::optional<std::string> root;
  std::string pack;
  std::vector<std::string> recipients;
  std::string receipt;
  bool force = false;
  bool inert = false;
  bool check = true;
};

ballast::Receipt::Steps steps_of(const ShardOptions& options, const ballast::Checkpoint& opened,
                                 std::uint64_t bytes, const ballast::Metadata& meta) {
  ballast::Receipt::Steps steps;
  steps.root = options.root.value_or(ballast::find_root(opened).path);
  if (!options.check) steps.unchecked = true;
  if (!meta.empty()) steps.meta = meta;
  if (!options.pack.empty()) steps.pack = options.pack;
  steps.shard_bytes = bytes;
  if (!options.recipients.empty()) steps.recipients = options.recipients;
  return steps;
}

int shard(Session& session, const ShardOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t bytes = parse_size(options.size, "--shard-size");
  const ballast::Metadata meta = parse_meta(options.meta);
  const std::string passphrase = passphrase_for(session, options.out, options.recipients);
  std::vector<std::string> outputs =
      ballast::shards_in_place(options.out, !options.recipients.empty() || !passphrase.empty());
  if (!options.receipt.empty()) {
    require_free(options.receipt, options.force);
    outputs.push_back(options.receipt);
  }
  ballast::require_apart({options.in}, outputs);
  const ballast::Checkpoint opened = session.open(options.in, {.inert = options.inert});
  for (const std::string& note : opened.notes) session.note(note);
  const ballast::Checkpoint checkpoint = state_dict(session, opened, options.root);
  std::optional<ballast::Receipt::Side> input;
  if (!options.receipt.empty()) input = ballast::receipt_side(checkpoint);
  Written written;
  {
    ProgressBar bar = session.progress("shard", options.out);
    written = written_shards(ballast::save_shards(checkpoint, options.out,
                                                  {.meta = meta,
                                                   .shard_bytes = bytes,
                                                   .check = options.check,
                                                   .pack = pack_of(options.pack),
                                                   .recipients = options.recipients,
                                                   .passphrase_file = passphrase,
                                                   .overwrite = options.force,
                                                   .progress = bar.callback()}));
  }
  if (input) {
    ballast::Receipt::Steps steps = steps_of(options, opened, bytes, meta);
    if (!passphrase.empty()) steps.passphrase = true;
    ballast::save_config(
        ballast::make_receipt("shard", std::move(*input), std::move(steps), written.file, passphrase),
        options.receipt, {.overwrite = options.force});
  }
  report_written(session, {{"input", {{"file", options.in}, {"format", opened.format.name()}}}}, written,
                 checkpoint, start);
  return kFine;
}

}  // namespace

void add_shard(CLI::App& app, Session& session) {
  auto options = std::make_shared<ShardOptions>();
  CLI::App& command =
      add_command(app, session, "shard", "write a checkpoint as files of a limited size, with an index",
                  "  ballast shard model.safetensors out/model.safetensors --shard-size 5GB\n"
                  "  ballast shard pytorch_model.bin out/\n"
                  "  ballast shard model.safetensors out/ --recipient age1…");
  command.add_option("IN", options->in, "The checkpoint to read: a file of any format, an index, a folder")
      ->required();
  command
      .add_option("OUT", options->out,
                  "DIR/NAME.safetensors gives DIR/NAME-00001-of-0000N.safetensors, ... and "
                  "DIR/NAME.safetensors.index.json; a folder means NAME model, and FOLDER/ is made when it "
                  "is not there")
      ->required();
  command
      .add_option("--shard-size,--size", options->size,
                  "The most data in one file (default: 5GB); a larger tensor gets its own")
      ->type_name("SIZE");
  add_root_option(command, options->root, kStateDict);
  add_meta_option(command, options->meta);
  add_pack_option(command, options->pack);
  add_recipient_option(command, options->recipients);
  add_receipt_option(command, options->receipt);
  command.add_flag("-f,--force", options->force, "Replace the shards the index in place leads to");
  add_inert_option(command, options->inert);
  add_no_check_option(command, options->check);
  add_io_option(command, session);
  command.callback(
      [&session, options] { session.run = [&session, options] { return shard(session, *options); }; });
}

}  // namespace tool
