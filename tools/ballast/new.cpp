// SPDX-License-Identifier: Apache-2.0
// ballast new: a C++ header with the struct that loads a file, from its keys and shapes.
#include "ballast/convert.h"
#include "ballast/error.h"
#include "ballast/steps.h"
#include "commands.h"
#include "scaffold/scaffold.h"
#include "state_dict.h"
#include "written.h"

namespace tool {
namespace {

struct NewOptions {
  std::string file;
  std::string out;
  ScaffoldOptions scaffold;
  std::optional<std::string> root;
  bool force = false;
  bool inert = false;
};

// What load() would look for the model's names in: the state dict, without the prefixes of wrappers.
ballast::Stepped weights_of(const ballast::Checkpoint& file, const NewOptions& options) {
  ballast::Stepped weights = ballast::apply_steps(file, {.root = options.root, .strip_prefixes = true});
  weights.taken = {};  // their names are not asked for, and may be very many
  weights.origins = {};
  return weights;
}

int run(Session& session, const NewOptions& options) {
  if (!options.out.empty()) {
    require_free(options.out, options.force);
    ballast::require_apart({options.file}, {options.out});
  }
  const ballast::Stepped weights = weights_of(session.open(options.file, {.inert = options.inert}), options);
  for (const std::string& note : weights.checkpoint.notes) session.note(note);
  const std::string header = scaffold(weights.checkpoint, options.scaffold);
  if (!options.out.empty()) ballast::save_text(header, options.out, options.force);
  if (session.json) {
    JsonStream json(session.out);
    json.begin_object().member("schema", 1).member("file", options.file);
    json.member("output", options.out.empty() ? Json(nullptr) : Json(options.out));
    json.member("name", options.scaffold.name);
    json.member("root", weights.root.empty() ? Json(nullptr) : Json(weights.root));
    json.member("tensors", weights.checkpoint.size()).member("header", header);
    json.member("notes", weights.checkpoint.notes);
    json.finish();
  } else if (options.out.empty()) {
    session.out.write(header);
  } else if (!session.quiet) {
    session.out.print("wrote {}: struct {} for {} tensors\n", ballast::display(options.out),
                      options.scaffold.name, weights.checkpoint.size());
  }
  return kFine;
}

}  // namespace

void add_new(CLI::App& app, Session& session) {
  auto options = std::make_shared<NewOptions>();
  CLI::App& command =
      add_command(app, session, "new", "write the C++ struct that loads a file",
                  "  ballast new model.pt -o model.h\n"
                  "  ballast new resnet50.pth --name ResNet50 --namespace models > resnet50.h\n"
                  "  ballast new checkpoint.pth.tar --root state_dict");
  command.add_option("FILE", options->file, "The checkpoint to make a struct of")->required();
  command.add_option("-o,--output", options->out, "Write the header there (default: standard output)")
      ->type_name("OUT");
  command.add_option("--name", options->scaffold.name, "Name of the struct (default: Model)")
      ->type_name("NAME");
  command.add_option("--namespace", options->scaffold.space, "Put it into this namespace")->type_name("NAME");
  add_root_option(command, options->root, kStateDict);
  command.add_flag("-f,--force", options->force, "Overwrite OUT");
  add_inert_option(command, options->inert);
  command.callback(
      [&session, options] { session.run = [&session, options] { return run(session, *options); }; });
}

}  // namespace tool
