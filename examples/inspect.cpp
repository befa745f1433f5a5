// SPDX-License-Identifier: Apache-2.0
// Opens a training checkpoint and uses what is inside: names, the object tree, the numbers of one tensor.
//   example_inspect data/net.pt
// (Another file opens just as well; what it holds beside its tensors will have other names.)
#include <ballast/ballast.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FILE\n";
    return 2;
  }
  try {
    const ballast::Checkpoint file =
        ballast::open(argv[1]);  // decided by content: .pt, .pth.tar, .bin, .safetensors, …
    for (const auto& t : file) std::cout << t.name << ' ' << t.dtype << ' ' << t.shape << '\n';
    std::cout << "epoch " << file.value("epoch").as_int() << ", loss " << file.value("loss").as_float()
              << '\n';

    const ballast::Tensor bias = file.tensor("state_dict.4.bias");  // a view of the file: nothing was copied
    std::cout << "bias[0] = " << bias.span<float>()[0] << '\n';
  } catch (const ballast::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
