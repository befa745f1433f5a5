// SPDX-License-Identifier: Apache-2.0
// Writes the headers that scaffold_compiles_test.cpp includes: write_scaffolds TESTS_FOLDER OUT_FOLDER
#include <fstream>
#include <iostream>

#include "ballast/scaffold.h"
#include "model/model_keys.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const auto write = [&](const std::string& name, const ballast::Checkpoint& checkpoint) {
    std::ofstream(std::string(argv[2]) + "/" + name + ".h")
        << ballast::scaffold(checkpoint, {.name = "Model", .space = name + "_scaffold"});
  };
  for (const char* name : {"resnet50", "vit_b_16", "gpt2"})
    write(name, ballast::testing_kit::keys_of(argv[1], name));
  write("zoo", ballast::testing_kit::zoo_keys());

} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
