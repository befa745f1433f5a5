// SPDX-License-Identifier: Apache-2.0
// ballast merge: the tensors of shards, or of several files, in one file.
#include <chrono>

#include "ballast/convert.h"
#include "ballast/error.h"
#include "commands.h"
#include "fail.h"
#include "state_dict.h"
#include "written.h"

namespace tool {
namespace {

struct MergeArguments {
  std::vector<std::string> files;  // the last one is written
  std::string pack;
  ballast::MergeOptions options;
};

int merge(Session& session, const MergeArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const std::string& out = arguments.files.back();
  if (arguments.files.size() < 2)
    fail(ballast::Errc::invalid_argument, "", "OUT is missing; 'ballast merge --help' shows what it takes");
  const std::vector<std::string> in(arguments.files.begin(), arguments.files.end() - 1);
  for (const std::string& file : in) session.about_to_read(file);
  ballast::MergeOptions options = arguments.options;
  require_free(out, options.overwrite);
  options.io = session.io_or(options.io);
  options.expansion = session.expansion;
  options.pack = pack_of(arguments.pack);
  options.passphrase_file = passphrase_for(session, out, options.recipients);
  const ballast::Merged done = [&] {
    ProgressBar bar = session.progress("merge", out);
    options.progress = bar.callback();
    return ballast::merge_files(in, out, options);
  }();
  for (std::size_t i = 0; i < in.size() && !options.root; ++i) note_found(session, in[i], done.roots[i]);
  for (const std::string& note : done.notes) session.note(note);
  const Written written{.file = out, .bytes = size_of_file(out), .shards = {}};
  report_written(session, {{"inputs", in}}, written, done.checkpoint, start);
  return kFine;
}

}  // namespace

void add_merge(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App& command =
      add_command(app, session, "merge", "write the tensors of shards, or of several files, as one file",
                  "  ballast merge model.safetensors.index.json model.safetensors\n"
                  "  ballast merge downloads/llama model.safetensors\n"
                  "  ballast merge encoder.pt decoder.pt model.safetensors --receipt model.json");
  command
      .add_option("IN", arguments->files,
                  "What to read (an index, a folder, or files of any format), then the file to write")
      ->required()
      ->option_text("IN... OUT");
  add_format_option(command, arguments->options.format);
  add_root_option(command, arguments->options.root, kStateDict);
  add_pack_option(command, arguments->pack);
  add_recipient_option(command, arguments->options.recipients);
  add_receipt_option(command, arguments->options.receipt);
  command.add_flag("-f,--force", arguments->options.overwrite, "Overwrite OUT, and the receipt");
  add_inert_option(command, arguments->options.inert);
  add_no_check_option(command, arguments->options.check);
  add_io_option(command, session);
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return merge(session, *arguments); }; });
}

}  // namespace tool
