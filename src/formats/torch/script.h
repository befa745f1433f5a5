// SPDX-License-Identifier: Apache-2.0
// TorchScript's code records, as far as weights need them: which attributes of a class are parameters and
// buffers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::torch {

/// What the code of a TorchScript archive says of a class: which of its tensors are parameters and buffers.
struct ScriptClass {
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
};

using ScriptClasses = std::map<std::string, ScriptClass, std::less<>>;

/// Adds the classes of one code record. `module` is its path without "code/" and ".py":
/// "__torch__/torch/nn/modules/linear".
void read_script_classes(std::string_view source, std::string_view module, ScriptClasses& classes);

}  // namespace ballast::torch
