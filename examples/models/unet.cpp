// SPDX-License-Identifier: Apache-2.0
// Every pixel of an image gets a class.
//   example_unet WEIGHTS CASE
// CASE holds images and PyTorch's logits for their pixels.
#include "unet.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: example_unet WEIGHTS CASE\n";
    return 2;
  }
  models::UNet net = models::UNet::make(3, 4, 8, 3);  // channels, classes, width, levels
  std::cout << ballast::load(net, argv[1], {.unused = ballast::OnUnused::error});

  const ballast::Checkpoint expected = ballast::open(argv[2]);
  const ballast::Tensor logits = net.forward(expected.tensor("images"));  // [batch, classes, height, width]
  const ballast::Tensor classes = ballast::argmax(logits, 1);
  examples::print_numbers("pixels of each class:", ballast::sum(ballast::one_hot(classes, 4), {0, 1, 2}));
  return examples::agrees(logits, expected.tensor("logits"), 1) ? 0 : 1;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
