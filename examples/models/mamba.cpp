// SPDX-License-Identifier: Apache-2.0
// Greedy decoding with Mamba, from a folder as Hugging Face's tools write it:
//   example_mamba FOLDER CASE
// CASE holds prompts, the original's logits for them, and the tokens it appends to the first.
#include "mamba.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    const auto config = examples::config_of<models::MambaConfig>(folder);
    models::Mamba net = models::Mamba::make(config);
    std::cout << ballast::load(net, folder, models::Mamba::load_options(config));

    models::Mamba::Cache cache;
    const bool same =
        examples::near(net.forward(expected.tensor("prompts"), cache), expected.tensor("logits"));

    cache.clear();
    return examples::continues(expected,
                               [&](const ballast::Tensor& next) { return net.forward(next, cache); }) &&
           same;
  });
}
