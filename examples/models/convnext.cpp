// SPDX-License-Identifier: Apache-2.0
// Pictures classified by ConvNeXt, from a folder as Hugging Face's tools write it:
//   example_convnext FOLDER CASE
// CASE holds pictures and the original's logits.
#include "convnext.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    auto net = models::ConvNext::make(examples::config_of<models::ConvNextConfig>(folder));
    std::cout << ballast::load(net, folder,
                               {.dtype = ballast::Precision::full, .unused = ballast::OnUnused::error});
    return examples::near(net.forward(expected.tensor("images")), expected.tensor("logits"));
  });
}
