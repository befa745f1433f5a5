// SPDX-License-Identifier: Apache-2.0
// Tensors of other frameworks, which lie in memory, as a checkpoint.
#include <map>

#include "checkpoint.h"
#include "memory.h"
#include "tensor.h"
#include "values.h"

namespace py {
namespace {

// One tensor of checkpoint_of_specs.
struct Spec {
  const char* name = nullptr;
  Py_ssize_t name_size = 0;
  const char* code = nullptr;
  PyObject* shape = nullptr;
  unsigned long long address = 0;
  unsigned long long bytes = 0;
  PyObject* strides = nullptr;
  PyObject* owner = nullptr;
};

std::shared_ptr<const ballast::Storage> storage_of(const Spec& spec, std::uint64_t bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(spec.address));
  if (spec.owner == Py_None) return ballast::Storage::borrow(data, bytes);
  Py_INCREF(spec.owner);
  return ballast::Storage::borrow(data, bytes, [owner = spec.owner] {
    if (Py_IsInitialized() == 0) return;
    const Locked gil;
    Py_DECREF(owner);
  });
}

// By where they lie: what several names have in common is one storage, so that it stays one.
using SharedBytes =
    std::map<std::pair<unsigned long long, unsigned long long>, std::shared_ptr<const ballast::Storage>>;

ballast::Tensor tensor_of_spec(const Spec& spec, SharedBytes* shared) {
  const auto dtype = ballast::dtype_from_code(spec.code);
  if (!dtype) {
    PyErr_Format(PyExc_ValueError, "there is no dtype \"%s\"", spec.code);
    throw Raised{};
  }
  const ballast::Shape shape = shape_of(spec.shape);
  const auto count = ballast::try_numel(shape);
  constexpr std::int64_t kMost = std::int64_t{1} << 55;  // so that bits can be counted
  const std::uint64_t bits =
      static_cast<std::uint64_t>(std::min(count.value_or(0), kMost)) * info(*dtype).bits;
  const bool strided = spec.strides != Py_None;
  if (!count || *count > kMost || bits % 8 != 0 || (!strided && bits / 8 != spec.bytes)) {
    std::string text = to_string(ballast::ShapeView(shape));
    text.front() = '(';
    text.back() = ')';
    throw ballast::Error(ballast::Errc::size_mismatch, "",
                         "Error preparing tensor view: tensor of type " + std::string(info(*dtype).code) +
                             " and shape " + text + " can't be created from " + std::to_string(spec.bytes) +
                             " bytes");
  }
  if (spec.address == 0 && spec.bytes > 0) {
    PyErr_Format(PyExc_ValueError, "tensor \"%s\" has no memory: its storage was freed", spec.name);
    throw Raised{};
  }
  std::shared_ptr<const ballast::Storage> storage;
  if (shared != nullptr && spec.bytes > 0) {
    std::shared_ptr<const ballast::Storage>& known = (*shared)[{spec.address, spec.bytes}];
    if (!known) known = storage_of(spec, spec.bytes);
    storage = known;
  } else {
    storage = storage_of(spec, spec.bytes);
  }
  if (!strided) return ballast::Tensor::contiguous_view(*dtype, shape, storage);
  return {*dtype, shape, shape_of(spec.strides), storage};
}

}  // namespace

ballast::Checkpoint checkpoint_of_specs(PyObject* specs, PyObject* metadata, bool keep_ties) {
  SharedBytes shared;
  const Ref list(in_python([&] { return PySequence_List(specs); }));
  const Py_ssize_t count = PyList_Size(list.get());
  ballast::Checkpoint checkpoint;
  checkpoint.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GetItem(list.get(), i);
    if (PyTuple_Check(item) && PyTuple_Size(item) == 2 && is_tensor(PyTuple_GetItem(item, 1))) {
      checkpoint.add(text_of(PyTuple_GetItem(item, 0)), tensor_of(PyTuple_GetItem(item, 1)));
      continue;
    }
    Spec spec;
    if (!PyTuple_Check(item)) {
      PyErr_SetString(PyExc_TypeError, "a tuple for each tensor is needed");
      throw Raised{};
    }
    if (PyArg_ParseTuple(item, "s#sOKKOO", &spec.name, &spec.name_size, &spec.code, &spec.shape,
                         &spec.address, &spec.bytes, &spec.strides, &spec.owner) == 0)
      throw Raised{};
    checkpoint.add({spec.name, static_cast<std::size_t>(spec.name_size)},
                   tensor_of_spec(spec, keep_ties ? &shared : nullptr));
  }
  checkpoint.metadata = metadata_of(metadata);
  return checkpoint;
}

}  // namespace py
