// SPDX-License-Identifier: Apache-2.0
// A training checkpoint as PyTorch's ImageNet script leaves it (.pth.tar: epoch, optimizer, and every name
// with DataParallel's "module." before it) to an ONNX file: images of any size, batch norms folded.
//   example_tar_to_onnx checkpoint.pth.tar net.onnx
#include <iostream>
#include <string>

#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/onnx.h"
#include "ballast/value.h"
#include "small_resnet.h"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: example_tar_to_onnx CHECKPOINT.pth.tar OUT.onnx\n";
    return 2;
  }
  SmallResNet net;
  std::cout << ballast::load(net, argv[1],
                             {.unused = ballast::OnUnused::error});  // the prefix goes by itself
  const std::string epoch = std::to_string(ballast::open_value(argv[1], "epoch").as_int());
  const auto report = ballast::onnx::save(net, argv[2],
                                          {.inputs = {{"image", {"batch", 3, "height", "width"}}},
                                           .outputs = {"logits"},
                                           .opset = 13,
                                           .fold_batch_norm = true,
                                           .doc = "small_resnet after epoch " + epoch,
                                           .metadata = {{"epoch", epoch}},
                                           .source = argv[1],
                                           .overwrite = true});
  std::cout << argv[2] << ": " << report.nodes << " nodes, " << report.initializers << " initializers, "
            << report.bytes << " bytes\n";
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
