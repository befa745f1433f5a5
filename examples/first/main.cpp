// SPDX-License-Identifier: Apache-2.0
// The program of README.md. CMakeLists.txt beside it is that of a project of your own; export.py made net.pt.
#include <ballast/ballast.h>

#include <iostream>

struct Net {  // its fields are the names in the file: conv1.weight, conv1.bias, conv2.weight
  ballast::nn::Conv2d conv1{2, 2, 2};
  ballast::nn::Conv2d conv2{2, 2, 2, {.bias = false}};
  ballast::Tensor forward(const ballast::Tensor& x) const { return conv2(relu(conv1(x))); }
};

int main() {
  Net net;                                                        // costs nothing: shapes only until loaded
  std::cout << ballast::load(net, "net.pt");                      // every key accounted for, or an Error
  std::cout << net.forward(ballast::ones({1, 2, 4, 4})) << '\n';  // what PyTorch computes, printed as it does
  ballast::save(net, "net.safetensors", {.overwrite = true});     // PyTorch's names and layouts, for everyone
}
