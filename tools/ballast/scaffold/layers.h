// SPDX-License-Identifier: Apache-2.0
// Layers guessed from the names and shapes of their tensors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ballast/tensor.h"

namespace tool {

/// How matrices with a bias lie, as far as those around show that are not square.
enum class Lying : std::uint8_t {
  unknown,
  out_in,  ///< PyTorch's Linear
  in_out,  ///< GPT-2's Conv1D
};

struct GuessedLayer {
  std::string type;       ///< "nn::Conv2d"
  std::string arguments;  ///< "3, 64, {7, 7}, {.bias = false}"
  std::string comment;    ///< what the file does not say; often empty
};

/// `tensors` are all that lie below a key, by their names from there ("weight", "out_proj.bias"). Nothing
/// unless every one of them belongs to the layer. A square matrix is a Linear only when `around` says so.
[[nodiscard]] std::optional<GuessedLayer> guess_layer(std::string_view key,
                                                      const std::map<std::string, ballast::Tensor>& tensors,
                                                      Lying around);

}  // namespace tool
