// SPDX-License-Identifier: Apache-2.0
// DTensors: what FSDP2 and its like save, of each tensor the part that one process held.
#pragma once

#include "formats/torch/objects.h"

namespace ballast::torch {

/// `call`: (function, class, its arguments, state) for an object of that class. If it is a DTensor, that is
/// said, and of what it is a part, as far as the file says it.
void note_part_of_tensor(Objects& objects, const ValueNode* type, const Call& call);

}  // namespace ballast::torch
