// SPDX-License-Identifier: Apache-2.0
// Layers guessed from the names and shapes of their tensors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ballast/tensor.h"

namespace ballast {

struct GuessedLayer {
  std::string type;       ///< "nn::Conv2d"
  std::string arguments;  ///< "3, 64, {7, 7}, {.bias = false}"
  std::string comment;    ///< what the file does not say; often empty
};

/// `tensors` are all that lie below a key, by their names from there ("weight", "out_proj.bias"). Nothing
/// unless every one of them belongs to the layer.
[[nodiscard]] std::optional<GuessedLayer> guess_layer(std::string_view key,
                                                      const std::map<std::string, Tensor>& tensors);

}  // namespace ballast
