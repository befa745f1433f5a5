// SPDX-License-Identifier: Apache-2.0
// A C++ header for a checkpoint: structs whose fields are its keys, layers guessed from names and shapes,
// repeated blocks folded into vectors. What could not be guessed is a Tensor with a comment. The struct loads
// the file it was made from with nothing missing and nothing unused; what a file does not say (strides,
// heads, activations) is left to be filled in. Part of ballast::core.
#pragma once

#include <string>
#include <string_view>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)

namespace ballast {

struct ScaffoldOptions {
  std::string name = "Model";  ///< of the outermost struct
  std::string space = {};      ///< namespace; none when empty
};

/// The header's text.
[[nodiscard]] std::string scaffold(const Checkpoint& checkpoint, const ScaffoldOptions& options = {});

/// Atomic, like every file Ballast writes.
void save_scaffold(std::string_view header, const std::string& path, bool overwrite = false);

}  // namespace ballast

#pragma GCC visibility pop
