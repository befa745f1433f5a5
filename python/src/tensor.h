// SPDX-License-Identifier: Apache-2.0
// ballast::Tensor as a Python object, and its bytes for everybody who takes buffers or DLPack.
#pragma once

#include <memory>

#include "ballast/tensor.h"
#include "py.h"

namespace py {

/// Makes the types Memory and Tensor and puts them into the module.
void add_tensor_types(PyObject* module);

/// A new Python object of the class that ballast/_tensor.py registered.
[[nodiscard]] Ref wrap(const ballast::Tensor& tensor);
[[nodiscard]] bool is_tensor(PyObject* object);
[[nodiscard]] const ballast::Tensor& tensor_of(PyObject* object);

/// False when its bytes may not be written.
[[nodiscard]] bool is_writable(const ballast::Tensor& tensor);

/// Reads or computes the bytes, when that is still to be done, with the GIL free.
void make_ready(const ballast::Tensor& tensor);

/// All bytes of a storage that is ready, for whoever takes buffers; they live as long as it does.
[[nodiscard]] Ref memory_of(const std::shared_ptr<const ballast::Storage>& storage);
/// A capsule for another library; the tensor must be ready.
[[nodiscard]] Ref dlpack_capsule(const ballast::Tensor& tensor, bool versioned);
/// The same bytes as elements of another dtype of that size.
[[nodiscard]] ballast::Tensor reinterpret(const ballast::Tensor& tensor, ballast::DType dtype);
/// "F32" or "float32"; a ValueError for others.
[[nodiscard]] ballast::DType dtype_of(PyObject* code);
/// For the dtype of a file: ballast::Error when there is none of this name.
[[nodiscard]] ballast::DType dtype_named(const std::string& name);

}  // namespace py
