// SPDX-License-Identifier: Apache-2.0
// The rows of what a Tensor makes of itself: views and copies. The others are in src/ops/operations.h, and
// all of them in the table there.
#pragma once

#include "ballast/operation.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::operations {

extern const Operation permute, narrow, unsqueeze, squeeze, expand, reshape, slice, select, clone, cast;

}  // namespace ballast::operations

#pragma GCC visibility pop
