// SPDX-License-Identifier: Apache-2.0
// The object tree of a file as Python objects.
#pragma once

#include <vector>

#include "ballast/steps.h"
#include "ballast/value.h"
#include "py.h"

namespace py {

/// dict, list, tuple, set, numbers, text, bytes, None; tensors as ballast.Tensor; everything else as
/// ballast.Object. What is shared in the file is shared here, cycles are cycles; nothing recurses.
[[nodiscard]] Ref to_python(const ballast::Value& value);

/// [(pattern, replacement), …] or a dict of them.
[[nodiscard]] std::vector<ballast::RenameRule> rename_rules_of(PyObject* pairs);

}  // namespace py
