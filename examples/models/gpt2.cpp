// SPDX-License-Identifier: Apache-2.0
// Greedy decoding with GPT-2, each token computed once: what came before stays in the key/value cache.
//   example_gpt2 CONFIG.json WEIGHTS CASE
// CASE holds a prompt, the tokens PyTorch appends to it, and its logits for the last of them.
#include "gpt2.h"

#include <iostream>
#include <vector>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: example_gpt2 CONFIG.json WEIGHTS CASE\n";
    return 2;
  }
  models::Gpt2 net(ballast::load_config<models::Gpt2Config>(argv[1]));
  const ballast::Checkpoint weights = ballast::open(argv[2]);
  std::cout << ballast::load(net, weights, models::Gpt2::load_options(weights.contains("lm_head.weight")));

  const ballast::Checkpoint expected = ballast::open(argv[3]);
  ballast::Tensor next = expected.tensor("prompt");  // I64 [1, tokens]
  examples::print_numbers("prompt:", next);

  std::vector<ballast::nn::KVCache> cache;
  std::vector<ballast::Tensor> generated;
  ballast::Tensor logits;
  const std::int64_t count = expected.tensor("tokens").numel();
  for (std::int64_t i = 0; i < count; ++i) {
    logits = net.forward(next, &cache).index({ballast::Slice{}, -1});  // of the last token: [1, vocabulary]
    next = ballast::argmax(logits, -1, true);                          // [1, 1]
    generated.push_back(next);
  }
  const ballast::Tensor tokens = ballast::concat(generated, 1);
  examples::print_numbers("generated:", tokens);
  examples::print_numbers("PyTorch's:", expected.tensor("tokens"));

  const bool same_text = ballast::all(ballast::eq(tokens, expected.tensor("tokens"))).item() != 0;
  return examples::agrees(logits, expected.tensor("logits")) && same_text ? 0 : 1;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
