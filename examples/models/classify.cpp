// SPDX-License-Identifier: Apache-2.0
// An image classifier of torchvision's, from its .pth file:
//   example_classify resnet18|resnet50|mobilenet_v2|vit_b_16 WEIGHTS CASE
// CASE holds images and what PyTorch's model makes of them.
#include <iostream>
#include <string>

#include "../common.h"
#include "ballast/load_file.h"
#include "mobilenet_v2.h"
#include "resnet.h"
#include "vit_b_16.h"

namespace {

template <class Model>
bool classify(const std::string& weights, const std::string& expected_file,
              ballast::LoadOptions options = {}) {
  Model net;
  options.unused = ballast::OnUnused::error;
  std::cout << ballast::load(net, weights, options);

  const ballast::Checkpoint expected = ballast::open(expected_file);
  const ballast::Tensor logits = net.forward(expected.tensor("images"));  // [batch, 1000]
  const ballast::Sorted best = ballast::topk(ballast::softmax(logits), 3);
  examples::print_numbers("most likely classes:", best.indices);
  bool same = examples::agrees(logits, expected.tensor("logits"));

  const std::size_t folded = ballast::fuse(net).size();
  if (folded > 0) {
    std::cout << folded << " batch norms folded into the convolutions before them\n";
    same = examples::agrees(net.forward(expected.tensor("images")), expected.tensor("logits")) && same;
  }
  return same;
}

bool run(const std::string& model, const std::string& weights, const std::string& expected) {
  if (model == "resnet18") return classify<models::ResNet18>(weights, expected);
  if (model == "resnet50") return classify<models::ResNet50>(weights, expected);
  if (model == "mobilenet_v2") return classify<models::MobileNetV2>(weights, expected);
  if (model == "vit_b_16") return classify<models::VitB16>(weights, expected, models::VitB16::load_options());
  std::cerr << "no such model: " << model << '\n';
  return false;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: example_classify MODEL WEIGHTS CASE\n";
    return 2;
  }
  return run(argv[1], argv[2], argv[3]) ? 0 : 1;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
