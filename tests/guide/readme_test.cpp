// SPDX-License-Identifier: Apache-2.0
// Runs the C++ of README.md, in a folder of its own with the file it speaks of: readme_test CONV2D.pt FOLDER
#include <ballast/ballast.h>

#include <filesystem>
#include <iostream>

namespace nn = ballast::nn;
using ballast::Tensor;

#include "readme.inc"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const std::filesystem::path file = std::filesystem::absolute(argv[1]);
  std::filesystem::remove_all(argv[2]);
  std::filesystem::create_directories(argv[2]);
  std::filesystem::current_path(argv[2]);
  std::filesystem::copy_file(file, "conv2d.pt");
  run_guide();
  std::cout << "the README ran to its end\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
