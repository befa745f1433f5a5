// SPDX-License-Identifier: Apache-2.0
// Objects in pictures by DETR, from a folder as Hugging Face's tools write it:
//   example_detr FOLDER CASE
// CASE holds pictures, which of their pixels are no padding, and the original's objects.
#include "detr.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    auto net = models::Detr::make(examples::config_of<models::DetrConfig>(folder));
    std::cout << ballast::load(net, folder, models::Detr::load_options());
    const auto objects = net.forward(expected.tensor("images"), expected.tensor("pixels"));
    const bool same = examples::near(objects.logits, expected.tensor("logits"));
    return examples::near(objects.boxes, expected.tensor("boxes")) && same;
  });
}
