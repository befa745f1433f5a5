// SPDX-License-Identifier: Apache-2.0
// Runs the code of docs/guide.md and docs/run.md from top to bottom, in a folder of its own with the files
// they speak of: guide_test NET.pt CASE.pt FOLDER
#include "guide.inc"

#include <filesystem>
#include <fstream>
#include <iostream>

namespace {

using namespace guide;  // whose models the files are made of
using ballast::Checkpoint;

Checkpoint renamed(const Checkpoint& in, const std::vector<ballast::RenameRule>& rules) {
  return ballast::rename(in, rules).checkpoint;
}

template <class Model>
Checkpoint filled() {
  Model model;
  ballast::for_each_tensor(model, [](std::string_view, ballast::Tensor& tensor, ballast::LayerKind) {
    tensor = ballast::Tensor::zeros(tensor.dtype(), tensor.shape());
  });
  return ballast::to_checkpoint(model);
}

void make_files() {
  const Checkpoint file = ballast::open("net.pt");
  const Checkpoint net = ballast::root(file, "model");
  Net model;
  ballast::load(model, file);
  ballast::save(net, "net.safetensors");
  ballast::save(ballast::filter(net, {"^stem"}), "other.pt");
  ballast::save(ballast::filter(net, {"^stem"}), "stem_only.pt");
  ballast::save(ballast::filter(net, {}, {"^head"}), "body.pt");
  ballast::save(ballast::filter(net, {"^head"}), "head.safetensors");
  ballast::save(
      renamed(net, {{R"(\.conv\.)", ".block.0."}, {R"(\.norm\.)", ".block.1."}, {"^", "backbone."}}),
      "wrapped.pt");
  ballast::save(model, "net_flax.safetensors", {.adapter = ballast::Adapter::flax});
  ballast::save(model, "net_native.safetensors", {.adapter = ballast::Adapter::none});
  const std::vector<ballast::rules::Rule> fuse{
      ballast::rules::Concat{R"(^q\.(.*)$)", {"k.$1", "v.$1"}, "qkv.$1", 0}};
  ballast::save(ballast::rules::apply(filled<Attention>(), fuse).checkpoint, "fused.safetensors");
  std::ofstream("rules.json")
      << R"({"rules": [{"match": "^qkv\\.(.*)$", "split": {"to": ["q.$1", "k.$1", "v.$1"]}}]})";
  ballast::save(filled<SameMlp>(), "mlp.pt");
  ballast::save(renamed(filled<Depthwise>(), {{"^", "conv."}}), "depthwise.pt");
  ballast::save(ballast::filter(filled<Tied>(), {"^wte"}), "tied.safetensors");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  const std::filesystem::path net = std::filesystem::absolute(argv[1]);
  const std::filesystem::path expected = std::filesystem::absolute(argv[2]);
  std::filesystem::remove_all(argv[3]);
  std::filesystem::create_directories(argv[3]);
  std::filesystem::current_path(argv[3]);
  std::filesystem::copy_file(net, "net.pt");
  std::filesystem::copy_file(expected, "case.pt");
  make_files();
  run_pages();
  std::cout << "the pages ran to their end\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
