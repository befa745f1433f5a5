// SPDX-License-Identifier: Apache-2.0
// One step of Stable Diffusion's network, from a folder as diffusers writes it:
//   example_diffusion_unet FOLDER CASE
// CASE holds noisy pictures, the times they are from, texts, and the noise that the original sees.
#include "diffusion_unet.h"

#include <iostream>

#include "../common.h"
#include "ballast/load_file.h"

int main(int argc, char** argv) {
  return examples::main_of(argc, argv, [](const std::string& folder, const ballast::Checkpoint& expected) {
    auto net = models::DiffusionUNet::make(examples::config_of<models::DiffusionConfig>(folder));
    std::cout << ballast::load(net, folder,
                               {.dtype = ballast::Precision::full, .unused = ballast::OnUnused::error});
    const ballast::Tensor noise =
        net.forward(expected.tensor("images"), expected.tensor("times"), expected.tensor("text"));
    return examples::near(noise, expected.tensor("noise"));
  });
}
