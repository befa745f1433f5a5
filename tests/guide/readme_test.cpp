// SPDX-License-Identifier: Apache-2.0
// Runs the C++ of README.md, in a folder of its own with the files it speaks of: readme_test MNIST.pt NET.pt
// FOLDER
#include <ballast/ballast.h>

#include <filesystem>
#include <iostream>

namespace nn = ballast::nn;
using ballast::Tensor;

namespace {

const Tensor images = Tensor::zeros(ballast::DType::u8, {2, 28, 28});  // NOLINT(cert-err58-cpp)

}  // namespace

#include "readme.inc"

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  const std::filesystem::path mnist = std::filesystem::absolute(argv[1]);
  const std::filesystem::path net = std::filesystem::absolute(argv[2]);
  std::filesystem::remove_all(argv[3]);
  std::filesystem::create_directories(argv[3]);
  std::filesystem::current_path(argv[3]);
  std::filesystem::copy_file(mnist, "mnist.pt");
  std::filesystem::copy_file(net, "net.pt");
  run_guide();
  std::cout << "the README ran to its end\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
