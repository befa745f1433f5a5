// SPDX-License-Identifier: Apache-2.0
// Python's subscripts as the library's.
#pragma once

#include <vector>

#include "ballast/tensor.h"
#include "py.h"

namespace py {

/// An int, a slice, Ellipsis, None, or a tuple of those; anything else is a TypeError.
[[nodiscard]] std::vector<ballast::Index> indices_of(PyObject* subscript);

}  // namespace py
