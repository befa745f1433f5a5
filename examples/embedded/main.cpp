// SPDX-License-Identifier: Apache-2.0
// One executable, no files: the weights were converted and linked in when it was built (ballast_embed in
// ../CMakeLists.txt). Links ballast::core and ballast::nn; there is no PyTorch reader inside.
#include <iostream>

#include "../import_weights/net.h"
#include "weights.h"

int main() try {
  Net net = Net::make({.channels = 8, .depth = 2, .labels = {"digit"}});
  const ballast::LoadReport report = weights::load(net, {.unused = ballast::OnUnused::error});
  std::cout << report.applied.size() << " tensors, " << weights::bytes().size()
            << " bytes, in the program itself\n";

  // What the compiler knows: ten floats, by name. A misspelt name does not compile.
  const std::span<const float, 10> bias = weights::values<"head.bias">();
  std::cout << "head.bias[0] = " << bias[0] << '\n';

  const bool in_place = net.head.bias.data() == reinterpret_cast<const std::byte*>(bias.data());
  std::cout << (in_place ? "nothing was copied\n" : "a copy was made\n");

  ballast::Tensor x = net.stem.forward(ballast::ones({1, 3, 8, 8}));
  for (const Block& block : net.blocks) x = ballast::relu(block.norm.forward(block.conv.forward(x)));
  x = net.head.forward(ballast::mean(x, {2, 3}));
  std::cout << "logits: " << x << '\n';
  return in_place && x.shape() == ballast::Shape{1, 10} ? 0 : 1;

} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
