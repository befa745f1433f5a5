// SPDX-License-Identifier: Apache-2.0
// ballast replay: what a receipt says, done again from its source, and whether the result is what it claims.
#include <filesystem>

#include "ballast/convert.h"
#include "ballast/error.h"
#include "commands.h"
#include "fail.h"
#include "written.h"

namespace tool {
namespace {

namespace fs = std::filesystem;

struct ReplayArguments {
  std::string receipt;
  std::vector<std::string> in;
  std::string out;
  std::string like;
  bool tensors = false;
  bool force = false;
  bool inert = false;
};

// The names are somebody's: no folders in them. Of shards it is the index.
std::vector<std::string> names_in(const ballast::Receipt& receipt) {
  std::vector<std::string> names = receipt.steps.inputs.value_or(std::vector<std::string>());
  if (names.empty()) {
    const std::vector<ballast::Receipt::File>& files = receipt.input.files;
    names.push_back(files.empty() ? "" : files.front().name);
    for (const ballast::Receipt::File& file : files)
      if (file.name.ends_with(".index.json")) names.front() = file.name;
  }
  for (std::string& name : names) {
    name = fs::path(name).filename().string();
    if (name == "." || name == "..") name.clear();
  }
  return names;
}

std::vector<std::string> sources_of(const ReplayArguments& arguments, const ballast::Receipt& receipt) {
  if (!arguments.in.empty()) return arguments.in;
  std::vector<std::string> sources;
  for (const std::string& name : names_in(receipt)) {
    const fs::path beside = fs::path(arguments.receipt).parent_path() / name;
    if (name.empty() || !fs::exists(beside))
      fail(ballast::Errc::file_not_found, ballast::display(arguments.receipt),
           "was made of {}, which is not beside it: name the file, ballast replay RECEIPT IN",
           ballast::quoted(name));
    sources.push_back(beside.string());
  }
  return sources;
}

int replay(Session& session, const ReplayArguments& arguments) {
  const ballast::Receipt receipt = ballast::read_receipt(arguments.receipt);
  std::vector<std::string> in = sources_of(arguments, receipt);
  for (const std::string& file : in) session.about_to_read(file);
  ballast::ReplayOptions options{.others = {in.begin() + 1, in.end()},
                                 .like = arguments.like,
                                 .inert = arguments.inert,
                                 .overwrite = arguments.force};
  std::string written;
  ballast::ReceiptCheck check;
  {
    ProgressBar bar = session.progress("replay", in.front());
    options.progress = bar.callback();
    if (!arguments.out.empty()) written = ballast::replay(receipt, in.front(), arguments.out, options);
    check = written.empty() ? ballast::check_replay(receipt, in.front(), options)
                            : ballast::check_result(written, receipt);
  }
  const bool same_bytes = check.of_files == 0;
  const bool same_tensors = check.problems.size() == check.of_files;
  if (session.json) {
    write_document(session.out, {{"schema", 1},
                                 {"receipt", arguments.receipt},
                                 {"input", in.size() == 1 ? Json(in.front()) : Json(in)},
                                 {"output", arguments.out.empty() ? Json(nullptr) : Json(written)},
                                 {"same_tensors", same_tensors},
                                 {"same_bytes", same_bytes},
                                 {"problems", check.problems}});
  } else if (!session.quiet) {
    for (const std::string& problem : check.problems) session.out.line(problem);
    session.out.print("{} by tensors, {} by bytes\n", same_tensors ? "the same" : "another result",
                      same_bytes ? "the same" : "another file");
  }
  return same_tensors && (same_bytes || arguments.tensors) ? kFine : kFound;
}

}  // namespace

void add_replay(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App& command =
      add_command(app, session, "replay", "do what a receipt says again, and compare the result with it",
                  "  ballast replay model.json\n"
                  "  ballast replay model.json downloads/model.pt --tensors-only\n"
                  "  ballast replay model.json -o again.safetensors");
  command.add_option("RECEIPT", arguments->receipt, "What --receipt of convert, shard, merge or meta wrote")
      ->required();
  command.add_option("IN", arguments->in,
                     "The source, of a merge all of them (default: files of those names beside the receipt)");
  command
      .add_option("-o,--output", arguments->out,
                  "Keep the result, in this file (of meta of shards: a folder); else it is compared and gone")
      ->type_name("FILE");
  command.add_option("--like", arguments->like, "The file that --like was, where the receipt speaks of one")
      ->type_name("FILE");
  command.add_flag("--tensors-only", arguments->tensors,
                   "Equal tensors are enough for exit code 0: another version may write other bytes");
  command.add_flag("-f,--force", arguments->force, "Overwrite the file of -o");
  add_inert_option(command, arguments->inert);
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return replay(session, *arguments); }; });
}

}  // namespace tool
