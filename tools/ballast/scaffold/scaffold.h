// SPDX-License-Identifier: Apache-2.0
// A C++ header for a checkpoint: structs whose fields are its keys, layers guessed from names and shapes,
// repeated blocks folded into vectors. What could not be guessed is a Tensor with a comment. The struct loads
// the file it was made from with nothing missing and nothing unused; what a file does not say (strides,
// heads, activations) is left to be filled in.
#pragma once

#include <string>

#include "ballast/checkpoint.h"

namespace tool {

struct ScaffoldOptions {
  std::string name = "Model";  ///< of the outermost struct
  std::string space = {};      ///< namespace; none when empty
};

/// The header's text.
[[nodiscard]] std::string scaffold(const ballast::Checkpoint& checkpoint,
                                   const ScaffoldOptions& options = {});

}  // namespace tool
