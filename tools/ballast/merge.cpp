// SPDX-License-Identifier: Apache-2.0
// ballast merge: the tensors of shards, or of several files, in one file.
#include <algorithm>
#include <chrono>

#include "ballast/adapter.h"
#include "ballast/error.h"
#include "ballast/quantized.h"
#include "ballast/steps.h"
#include "commands.h"
#include "fail.h"
#include "state_dict.h"
#include "text.h"
#include "written.h"

namespace tool {
namespace {

struct MergeOptions {
  std::vector<std::string> files;  // the last one is written
  ballast::Format format;
  std::optional<std::string> root;
  std::string pack;
  bool force = false;
  bool inert = false;
  bool check = true;
};

ballast::Checkpoint open_all(Session& session, const MergeOptions& options) {
  const ballast::Format format = ballast::format_for(options.files.back(), options.format);
  std::vector<ballast::Checkpoint> parts;
  for (auto file = options.files.begin(); file + 1 != options.files.end(); ++file) {
    const ballast::Checkpoint opened = session.open(*file, {.inert = options.inert});
    for (const std::string& note : opened.notes) session.note(note);
    parts.push_back(state_dict(session, opened, options.root));
    if (format->holds_metadata || !ballast::is_quantized(parts.back())) continue;
    parts.back() = ballast::dequantize(parts.back());
    session.note(fmt::format("{}: quantized tensors become numbers, as the output has no place for scales",
                             ballast::display(*file)));
  }
  return parts.size() == 1 ? std::move(parts.front()) : ballast::merge(parts);
}

// As convert: files of Burn's are for Burn, and get its layout.
ballast::Checkpoint laid_out_for(Session& session, ballast::Format format, ballast::Checkpoint checkpoint) {
  const ballast::Adapter usual = ballast::usual_adapter(format);
  if (usual == ballast::Adapter::pytorch) return checkpoint;
  ballast::Adapted adapted = ballast::adapt(checkpoint, {.to = usual});
  for (const std::string& note : adapted.notes) session.note(note);
  return std::move(adapted.checkpoint);
}

int merge(Session& session, const MergeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::string& out = options.files.back();
  if (options.files.size() < 2)
    fail(ballast::Errc::invalid_argument, "", "OUT is missing; 'ballast merge --help' shows what it takes");
  require_free(out, options.force);
  ballast::require_apart({options.files.begin(), options.files.end() - 1}, {out});
  const ballast::Format format = ballast::format_for(out, options.format);
  const ballast::Checkpoint checkpoint = laid_out_for(session, format, open_all(session, options));
  if (const std::size_t tied = format->holds_ties ? 0 : ballast::ties(checkpoint).size(); tied > 0)
    session.note(fmt::format("{} has no ties: {} written again", format.name(),
                             tied == 1 ? "1 tensor is" : fmt::format("{} tensors are", tied)));
  {
    ProgressBar bar = session.progress("merge", out);
    ballast::save(checkpoint, out,
                  {.format = options.format,
                   .check = options.check,
                   .pack = pack_of(options.pack),
                   .overwrite = options.force,
                   .progress = bar.callback()});
  }
  const Written written{.file = out, .bytes = size_of_file(out), .shards = {}};
  report_written(session,
                 {{"inputs", std::vector<std::string>(options.files.begin(), options.files.end() - 1)}},
                 written, checkpoint, start);
  return kFine;
}

}  // namespace

void add_merge(CLI::App& app, Session& session) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App& command =
      add_command(app, session, "merge", "write the tensors of shards, or of several files, as one file",
                  "  ballast merge model.safetensors.index.json model.safetensors\n"
                  "  ballast merge downloads/llama model.safetensors\n"
                  "  ballast merge encoder.pt decoder.pt model.safetensors");
  command
      .add_option("IN", options->files,
                  "What to read (an index, a folder, or files of any format), then the file to write")
      ->required()
      ->option_text("IN... OUT");
  add_format_option(command, options->format);
  add_root_option(command, options->root, kStateDict);
  add_pack_option(command, options->pack);
  command.add_flag("-f,--force", options->force, "Overwrite OUT");
  add_inert_option(command, options->inert);
  add_no_check_option(command, options->check);
  add_io_option(command, session);
  command.callback(
      [&session, options] { session.run = [&session, options] { return merge(session, *options); }; });
}

}  // namespace tool
