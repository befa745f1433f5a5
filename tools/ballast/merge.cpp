// SPDX-License-Identifier: Apache-2.0
// ballast merge: the tensors of shards, or of several files, in one file.
#include <algorithm>
#include <chrono>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/steps.h"
#include "commands.h"
#include "text.h"
#include "written.h"

namespace tool {
namespace {

struct MergeOptions {
  std::vector<std::string> files;  // the last one is written
  std::string format;
  bool force = false;
};

ballast::Checkpoint open_all(Session& session, const MergeOptions& options) {
  std::vector<ballast::Checkpoint> parts;
  for (auto file = options.files.begin(); file + 1 != options.files.end(); ++file)
    parts.push_back(session.open(*file));
  for (const ballast::Checkpoint& part : parts) {
    for (const std::string& note : part.notes) session.note(note);
  }
  return parts.size() == 1 ? std::move(parts.front()) : ballast::merge(parts);
}

int merge(Session& session, const MergeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::string& out = options.files.back();
  if (options.files.size() < 2)
    throw ballast::Error(ballast::Errc::invalid_argument, "merge",
                         "needs something to read and a file to write");
  if (!options.force && exists(out))
    throw ballast::Error(ballast::Errc::already_exists, ballast::display(out),
                         "is there already; -f overwrites it");
  const ballast::Checkpoint checkpoint = open_all(session, options);
  {
    ProgressBar bar = session.progress("merge", out);
    ballast::save(checkpoint, out,
                  {.format = options.format, .overwrite = options.force, .progress = bar.callback()});
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
      .add_option("FILE", options->files,
                  "What to read (an index, a folder, or files of any format), then the file to write")
      ->required();
  command
      .add_option("--to", options->format, "The format to write; the last file's extension says it otherwise")
      ->type_name("FORMAT");
  command.add_flag("-f,--force", options->force, "Overwrite the last file");
  add_io_option(command, session);
  command.callback(
      [&session, options] { session.run = [&session, options] { return merge(session, *options); }; });
}

}  // namespace tool
