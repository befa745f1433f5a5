// SPDX-License-Identifier: Apache-2.0
// ballast::Checkpoint as a Python object.
#pragma once

#include "ballast/checkpoint.h"
#include "py.h"

namespace py {

void add_checkpoint_type(PyObject* module);

[[nodiscard]] Ref wrap(ballast::Checkpoint checkpoint);
/// A TypeError when it is something else.
[[nodiscard]] const ballast::Checkpoint& checkpoint_of(PyObject* object);

/// A checkpoint of tensors that lie in memory: (name, dtype code, shape, address, bytes, strides in elements
/// or None, owner or None) each. The owner lives as long as the tensor.
[[nodiscard]] ballast::Checkpoint checkpoint_of_specs(PyObject* specs, PyObject* metadata, bool keep_ties);

}  // namespace py
