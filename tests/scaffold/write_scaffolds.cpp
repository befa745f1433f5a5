// SPDX-License-Identifier: Apache-2.0
// Writes the headers that scaffold_compiles_test.cpp includes and that no file is small enough for, and
// odd.safetensors, whose header the tool writes: write_scaffolds TESTS_FOLDER OUT_FOLDER
#include <fstream>
#include <iostream>

#include "ballast/safetensors.h"
#include "model/model_keys.h"
#include "scaffold/scaffold.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const auto write = [&](const std::string& name, const ballast::Checkpoint& checkpoint) {
    std::ofstream(std::string(argv[2]) + "/" + name + ".h")
        << tool::scaffold(checkpoint, {.name = "Model", .space = name + "_scaffold"});
  };
  for (const char* name : {"resnet50", "vit_b_16", "gpt2"})
    write(name, ballast::testing_kit::keys_of(argv[1], name));
  write("zoo", ballast::testing_kit::zoo_keys());
  ballast::safetensors::save(ballast::testing_kit::odd_keys(), std::string(argv[2]) + "/odd.safetensors",
                             {.overwrite = true});
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
