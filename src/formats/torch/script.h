// SPDX-License-Identifier: Apache-2.0
// TorchScript's code records, as far as weights need them: which attributes of a class are parameters and
// buffers.
#pragma once

#include <string_view>

#include "checkpoint/flatten.h"

namespace ballast::torch {

/// Adds the classes of one code record. `module` is its path without "code/" and ".py":
/// "__torch__/torch/nn/modules/linear".
void read_script_classes(std::string_view source, std::string_view module, ScriptClasses& classes);

}  // namespace ballast::torch
