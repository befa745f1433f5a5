// SPDX-License-Identifier: Apache-2.0
// Option B: the weights were converted beforehand; the program that ships has no PyTorch reader in it. Links
// ballast::core and ballast::nn.
//   example_import_option_b net.safetensors
#include <iostream>

#include "ballast/load.h"
#include "ballast/safetensors.h"
#include "net.h"

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: example_import_option_b NET.safetensors\n";
    return 2;
  }
  Net net = Net::make({.channels = 8, .depth = 2, .labels = {"digit"}});
  std::cout << ballast::load(net, ballast::safetensors::open(argv[1]), {.unused = ballast::OnUnused::error});

} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
