// SPDX-License-Identifier: Apache-2.0
// ballast hash: SHA-256 of every tensor, and a root that is the same wherever the tensors are the same.
#include "ballast/hash.h"

#include "ballast/error.h"
#include "commands.h"
#include "hash_list.h"
#include "state_dict.h"
#include "steps.h"

namespace tool {
namespace {

struct HashArguments {
  std::vector<std::string> files;
  StepArguments steps;
  bool root_only = false;
  bool check = false;  // FILE... are lists
  bool inert = false;
};

struct Hashed {
  ballast::Format format;
  ballast::Manifest manifest;
};

Hashed hash_file(Session& session, const HashArguments& arguments, const std::string& path) {
  ballast::Checkpoint file = session.open(path, {.io = ballast::Io::read, .inert = arguments.inert});
  ballast::Steps steps = steps_of(arguments.steps);
  steps.quantized = ballast::OnQuantized::keep;
  const ballast::Format format = file.format;
  const ballast::Checkpoint checkpoint = apply_steps(session, std::move(file), steps);
  ProgressBar bar = session.progress("hash", path);
  return {format, ballast::hash(checkpoint, bar.callback())};
}

int check(Session& session, const HashArguments& arguments, const std::string& list, JsonStream& json) {
  return check_list(session, list, json,
                    [&](const std::string& path) { return hash_file(session, arguments, path).manifest; });
}

int hash(Session& session, const HashArguments& arguments, const std::string& path, JsonStream& json) {
  const auto [format, manifest] = hash_file(session, arguments, path);
  if (session.json) {
    json.member("format", format.name()).member("root", manifest.root).key("tensors").begin_rows();
    for (const ballast::TensorHash& tensor : manifest.tensors) {
      json.begin_object().member("name", tensor.name).member("dtype", tensor.dtype);
      json.key("shape").value(ballast::ShapeView(tensor.shape)).member("bytes", tensor.bytes);
      json.member("sha256", tensor.sha256).end();
    }
    json.end();
    return kFine;
  }
  if (!arguments.root_only) {
    for (const ballast::TensorHash& tensor : manifest.tensors)
      session.out.print("{}  {}\n", tensor.sha256, ballast::display(tensor.name));
  }
  session.out.print("{}  {}\n", manifest.root,
                    session.stdout_terminal.paint(ballast::display(path), Style::bold));
  return kFine;
}

}  // namespace

void add_hash(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<HashArguments>();
  CLI::App& command =
      add_command(app, session, "hash", "SHA-256 of every tensor, and of all of them together",
                  "  ballast hash model.pt model.safetensors --root-only\n"
                  "  ballast hash model.safetensors --json > manifest.json\n"
                  "  ballast hash model.safetensors > model.sha256; ballast hash --check model.sha256");
  command.add_option("FILE", arguments->files, "Checkpoints of any format; lists with --check")->required();
  CLI::Option* root_only =
      command.add_flag("--root-only", arguments->root_only, "One line a file: the hash of all its tensors");
  command
      .add_flag("-c,--check", arguments->check,
                "FILE are lists that hash printed: is everything as each line says?")
      ->excludes(root_only);
  add_step_options(command, arguments->steps, kStateDict);
  add_inert_option(command, arguments->inert);
  add_io_option(command, session);
  command.callback([&session, arguments] {
    session.run = [&session, arguments] {
      return for_each_file(session, arguments->files, [&](const std::string& path, JsonStream& json) {
        return arguments->check ? check(session, *arguments, path, json)
                                : hash(session, *arguments, path, json);
      });
    };
  });
}

}  // namespace tool
