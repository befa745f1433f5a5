// SPDX-License-Identifier: Apache-2.0
// Option A: the program reads PyTorch's file when it runs. Links ballast::import and ballast::nn.
//   example_import_option_a net.pt net.safetensors net.json
// loads the model, prints what happened, and writes what option B needs.
#include <iostream>

#include "ballast/load_file.h"
#include "net.h"

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: example_import_option_a NET.pt OUT.safetensors OUT.json\n";
    return 2;
  }
  const auto config = ballast::load_config<NetConfig>(argv[1], "config");
  Net net = Net::make(config);
  std::cout << ballast::load(net, argv[1], {.root = "model", .unused = ballast::OnUnused::error});
  ballast::print(net, std::cout);
  ballast::save(net, argv[2],
                {.adapter = ballast::Adapter::none,
                 .overwrite = true});  // native layout: nothing left to do when it is loaded
  ballast::save_config(config, argv[3], {.overwrite = true});

} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
