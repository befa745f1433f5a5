// SPDX-License-Identifier: Apache-2.0
// ballast hash: SHA-256 of every tensor, and a root that is the same wherever the tensors are the same.
#include "ballast/hash.h"

#include "ballast/display.h"
#include "commands.h"
#include "selection.h"
#include "state_dict.h"

namespace tool {
namespace {

struct HashArguments {
  std::vector<std::string> files;
  std::optional<std::string> root;
  Selection selection;
  bool root_only = false;
  bool inert = false;
};

int hash(Session& session, const HashArguments& arguments, const std::string& path, JsonStream& json) {
  const ballast::Checkpoint file = session.open(path, {.io = ballast::Io::read, .inert = arguments.inert});
  const ballast::Checkpoint checkpoint =
      select(state_dict(session, file, arguments.root), arguments.selection);
  const ballast::Manifest manifest = [&] {
    ProgressBar bar = session.progress("hash", path);
    return ballast::hash(checkpoint, bar.callback());
  }();
  if (session.json) {
    json.member("format", file.format.name()).member("root", manifest.root).key("tensors").begin_rows();
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
                  "  ballast hash model.safetensors --json > manifest.json");
  command.add_option("FILE", arguments->files, "Checkpoints of any format")->required();
  command.add_flag("--root-only", arguments->root_only, "One line a file: the hash of all its tensors");
  add_root_option(command, arguments->root, kStateDict);
  add_selection_options(command, arguments->selection);
  add_inert_option(command, arguments->inert);
  add_io_option(command, session);
  command.callback([&session, arguments] {
    session.run = [&session, arguments] {
      return for_each_file(session, arguments->files, [&](const std::string& path, JsonStream& json) {
        return hash(session, *arguments, path, json);
      });
    };
  });
}

}  // namespace tool
