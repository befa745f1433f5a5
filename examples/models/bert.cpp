// SPDX-License-Identifier: Apache-2.0
// Two sentences of different length through a BERT that tells them apart.
//   example_bert CONFIG.json WEIGHTS CASE
// CASE holds tokens, their types, where there are words and where padding, and PyTorch's logits.
#include "bert.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: example_bert CONFIG.json WEIGHTS CASE\n";
    return 2;
  }
  auto net = models::BertForSequenceClassification::make(ballast::load_config<models::BertConfig>(argv[1]));
  std::cout << ballast::load(net, argv[2], {.unused = ballast::OnUnused::error});

  const ballast::Checkpoint expected = ballast::open(argv[3]);
  const ballast::Tensor logits =
      net.forward(expected.tensor("tokens"), expected.tensor("types"), expected.tensor("words"));
  examples::print_numbers("labels:", ballast::argmax(logits, -1));
  return examples::agrees(logits, expected.tensor("logits")) ? 0 : 1;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
