// SPDX-License-Identifier: Apache-2.0
// Which text goes with which picture, by CLIP from a folder as Hugging Face's tools write it:
//   example_clip FOLDER CASE
// CASE holds pictures and texts, and what the original says of each pair.
#include "clip.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    auto net = models::Clip::make(examples::config_of<models::ClipConfig>(folder));
    std::cout << ballast::load(net, folder, models::Clip::load_options());

    const ballast::Tensor images = expected.tensor("images");  // [batch, channels, height, width]
    const ballast::Tensor tokens = expected.tensor("tokens");  // I64 [batch, tokens]
    bool same = examples::near(net.forward(images, tokens), expected.tensor("logits"));
    same = examples::near(net.embed_text(tokens), expected.tensor("text_embeds")) && same;
    return examples::near(net.embed_images(images), expected.tensor("image_embeds")) && same;
  });
}
