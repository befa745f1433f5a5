// SPDX-License-Identifier: Apache-2.0
// rewrite_torch IN OUT: opens every file of the folder IN and writes its whole tree to OUT, as a zip archive
// (NAME) and in the legacy format (NAME.legacy). OUT/outcome.tsv says what became of each. compare_torch.py
// then loads old and new with a real PyTorch.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "ballast/ballast.h"

namespace {

using namespace ballast;

std::string rewrite(const std::string& in, const std::string& out, bool legacy) {
  try {
    const Checkpoint checkpoint = open(in);
    if (!checkpoint.tree) return "no-tree";
    torch::save(*checkpoint.tree, out,
                {.format = legacy ? formats::torch_legacy : formats::torch_zip, .overwrite = true});
    return "ok";
  } catch (const Error& error) {
    return std::string(name(error.code())) + '\t' + error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "rewrite_torch IN OUT\n";
    return 2;
  }
  const std::string in = argv[1];
  const std::string out = argv[2];
  std::filesystem::create_directories(out);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(in)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::ofstream outcome(out + "/outcome.tsv");
  for (const std::string& name : names) {
    outcome << name << '\t' << rewrite(in + "/" + name, out + "/" + name, false) << '\n';
    outcome << name << ".legacy\t" << rewrite(in + "/" + name, out + "/" + name + ".legacy", true) << '\n';
  }
}
