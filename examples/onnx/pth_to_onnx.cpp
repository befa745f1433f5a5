// SPDX-License-Identifier: Apache-2.0
// A state dict, a C++ model, an ONNX file: what torch.onnx.export does, without PyTorch.
//   example_pth_to_onnx net.pth net.onnx
#include <iostream>

#include "ballast/load_file.h"
#include "ballast/onnx.h"
#include "small_resnet.h"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: example_pth_to_onnx NET.pth OUT.onnx\n";
    return 2;
  }
  SmallResNet net;
  std::cout << ballast::load(net, argv[1], {.unused = ballast::OnUnused::error});
  const auto report = ballast::onnx::save(net, argv[2],
                                          {.inputs = {{"image", {"batch", 3, 32, 32}}},
                                           .outputs = {"logits"},
                                           .source = argv[1],
                                           .overwrite = true});
  std::cout << argv[2] << ": " << report.nodes << " nodes, " << report.initializers << " initializers, "
            << report.bytes << " bytes\n";
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
