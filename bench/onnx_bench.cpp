// SPDX-License-Identifier: Apache-2.0
// onnx_bench resnet50 WEIGHTS.pth OUT.onnx [fold]: loads, then exports once for every line on stdin, and
// prints the milliseconds. onnx_bench large OUT.onnx: a GPT-2-shaped model of more than 2 GB of weights,
// exported with external data; its input
//   and our output go to OUT.onnx.in and OUT.onnx.out, for scripts/check-onnx.
#include <chrono>
#include <iostream>
#include <string>

#include "../examples/models/gpt2.h"
#include "../examples/models/resnet.h"
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "ballast/onnx.h"
#include "ballast/safetensors.h"

namespace {

double milliseconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int resnet50(const std::string& weights, const std::string& out, bool fold) {
  models::ResNet50 net;
  static_cast<void>(ballast::load(net, weights));
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const double time = milliseconds([&] {
      ballast::onnx::save(net, out,
                          {.inputs = {{"image", {"batch", 3, 224, 224}}},
                           .outputs = {"logits"},
                           .opset = 16,
                           .fold_batch_norm = fold,
                           .overwrite = true});
    });
    std::cout << time << std::endl;
  }
  return 0;
}

ballast::Checkpoint one(const char* name, const ballast::Tensor& tensor) {
  ballast::Checkpoint checkpoint;
  checkpoint.add(name, tensor);
  return checkpoint;
}

int large(const std::string& out) {
  models::Gpt2 model({.vocab_size = 20000, .n_positions = 64, .n_embd = 1600, .n_layer = 18, .n_head = 25});
  ballast::init(model, 1);
  ballast::Generator generator(2);
  ballast::for_each_tensor(model, [&](std::string_view, ballast::Tensor& tensor, ballast::LayerKind kind) {
    if (kind == ballast::LayerKind::none) tensor = ballast::randn(tensor.shape(), generator) * 0.02;
  });
  ballast::onnx::SaveReport report;
  const double time = milliseconds([&] {
    report = ballast::onnx::save(model, out,
                                 {.inputs = {{"tokens", {"batch", "seq"}, ballast::DType::i64}},
                                  .outputs = {"logits"},
                                  .overwrite = true});
  });
  std::cout << report.nodes << " nodes, " << report.bytes << " bytes in the model, " << report.external_bytes
            << " in " << report.external_file << ", " << time / 1000 << " s\n";
  const ballast::Tensor tokens = ballast::arange(0, 12).reshape({2, 6});
  ballast::safetensors::save(one("tokens", tokens), out + ".in", {.overwrite = true});
  ballast::safetensors::save(one("logits", model.forward(tokens)), out + ".out", {.overwrite = true});
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string job = argc > 2 ? argv[1] : "";
  if (job == "resnet50" && argc > 3) return resnet50(argv[2], argv[3], argc > 4);
  if (job == "large") return large(argv[2]);
  std::cerr << "usage: onnx_bench resnet50 WEIGHTS.pth OUT.onnx [fold] | large OUT.onnx\n";
  return 2;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
