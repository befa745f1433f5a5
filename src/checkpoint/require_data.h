// SPDX-License-Identifier: Apache-2.0
// For what reads every byte of a checkpoint: tensors that are a shape alone have none, and those of another
// device none that can be read here.
#pragma once

#include <string>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Errc::not_representable for a tensor without data, Errc::unsupported for one on another device.
void require_data(const Checkpoint& checkpoint, const std::string& where);

}  // namespace ballast

#pragma GCC visibility pop
