// SPDX-License-Identifier: Apache-2.0
// Every word of a sentence gets a tag.
//   example_lstm_tagger WEIGHTS CASE
// CASE holds sentences and PyTorch's logits for their words.
#include "lstm_tagger.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: example_lstm_tagger WEIGHTS CASE\n";
    return 2;
  }
  models::LstmTagger net = models::LstmTagger::make(100, 32, 24, 7);  // vocabulary, features, hidden, tags
  std::cout << ballast::load(net, argv[1], {.unused = ballast::OnUnused::error});

  const ballast::Checkpoint expected = ballast::open(argv[2]);
  const ballast::Tensor logits = net.forward(expected.tensor("words"));  // [batch, words, tags]
  examples::print_numbers("tags:", ballast::argmax(logits, -1));
  return examples::agrees(logits, expected.tensor("logits")) ? 0 : 1;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
