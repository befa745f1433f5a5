// SPDX-License-Identifier: Apache-2.0
// Greedy decoding with Llama, from a folder as Hugging Face's tools write it:
//   example_llama FOLDER CASE
// CASE holds prompts, the original's logits for them, and the tokens it appends to the first.
#include "llama.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    const auto config = examples::config_of<models::LlamaConfig>(folder);
    models::Llama net = models::Llama::make(config);
    std::cout << ballast::load(net, folder, models::Llama::load_options(config));

    models::Llama::Cache cache;
    const bool same =
        examples::near(net.forward(expected.tensor("prompts"), cache), expected.tensor("logits"));

    cache.clear();
    return examples::continues(expected,
                               [&](const ballast::Tensor& next) { return net.forward(next, cache); }) &&
           same;
  });
}
