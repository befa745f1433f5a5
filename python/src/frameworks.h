// SPDX-License-Identifier: Apache-2.0
// Tensors as NumPy's and PyTorch's own objects. Neither is linked: both are called through Python.
#pragma once

#include <unordered_map>

#include "ballast/tensor.h"
#include "py.h"

namespace py {

/// Tensors as numpy.ndarray, without a copy. One Memory for each storage, whatever number of arrays look at
/// it.
class ToNumpy {
 public:
  /// `dtypes`: Safetensors' code → numpy.dtype.
  ToNumpy(PyObject* ndarray, PyObject* dtypes) : ndarray_(ndarray), dtypes_(dtypes) {}

  [[nodiscard]] Ref operator()(const ballast::Tensor& tensor);

 private:
  const Ref& dtype(ballast::DType dtype);

  PyObject* ndarray_;
  PyObject* dtypes_;
  Ref known_[ballast::kDTypeCount];
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
