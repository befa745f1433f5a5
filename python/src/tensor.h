// SPDX-License-Identifier: Apache-2.0
// ballast::Tensor as a Python object, and its bytes for NumPy, PyTorch and everybody else.
#pragma once

#include <memory>
#include <unordered_map>

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

/// Tensors as numpy.ndarray, without a copy. One Memory for each storage, whatever number of arrays look at
/// it.
class ToNumpy {
 public:
  /// `dtypes`: Safetensors' code → numpy.dtype.
  ToNumpy(PyObject* ndarray, PyObject* dtypes) : ndarray_(ndarray), dtypes_(dtypes) {}

  [[nodiscard]] Ref operator()(const ballast::Tensor& tensor);

 private:
  PyObject* dtype(ballast::DType dtype);

  PyObject* ndarray_;
  PyObject* dtypes_;
  PyObject* known_[ballast::kDTypeCount] = {};
  std::unordered_map<const ballast::Storage*, Ref> memories_;
};

/// Tensors as torch.Tensor through DLPack: each with a storage of its own, without a copy where the bytes may
/// be written.
class ToTorch {
 public:
  /// `table`: Safetensors' code → (code that DLPack and this PyTorch both know, torch.dtype to view it as or
  /// None, how many elements the last one holds).
  ToTorch(PyObject* from_dlpack, PyObject* table) : from_dlpack_(from_dlpack), table_(table) {}

  [[nodiscard]] Ref operator()(const ballast::Tensor& tensor);

 private:
  struct Way {
    bool known = false;
    ballast::DType as = ballast::DType::u8;
    PyObject* view = nullptr;
    std::int64_t pack = 1;
  };

  const Way& way(ballast::DType dtype);

  PyObject* from_dlpack_;
  PyObject* table_;
  Way ways_[ballast::kDTypeCount] = {};
  const ballast::Storage* ready_ = nullptr;  // the last one: most tensors of a file lie in one
};

}  // namespace py
