// SPDX-License-Identifier: Apache-2.0
// Sound to tokens with Whisper, from a folder as Hugging Face's tools write it:
//   example_whisper FOLDER CASE
// CASE holds spectrograms, the first tokens of the text, the original's logits for them, and the tokens it
// appends for the first spectrogram.
#include "whisper.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    auto net = models::Whisper::make(examples::config_of<models::WhisperConfig>(folder));
    std::cout << ballast::load(net, folder, models::Whisper::load_options());

    const ballast::Tensor sound = expected.tensor("sound");      // [batch, bins, frames]
    const ballast::Tensor prompts = expected.tensor("prompts");  // I64 [batch, tokens]
    models::Whisper::Cache cache = net.listen(sound);
    const bool same = examples::near(net.forward(prompts, cache), expected.tensor("logits"));

    cache = net.listen(sound.narrow(0, 0, 1));
    return examples::continues(expected,
                               [&](const ballast::Tensor& next) { return net.forward(next, cache); }) &&
           same;
  });
}
