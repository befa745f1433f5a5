// SPDX-License-Identifier: Apache-2.0
#include "tensor_index.h"

namespace py {
namespace {

// As in Python, a number beyond what a dimension can have means its end.
std::optional<std::int64_t> bound_of(PyObject* slice, const char* name) {
  const Ref bound(PyObject_GetAttrString(slice, name));
  if (bound.get() == Py_None) return std::nullopt;
  const Py_ssize_t number = PyNumber_AsSsize_t(bound.get(), nullptr);
  if (number == -1 && PyErr_Occurred() != nullptr) throw Raised{};
  return number;
}

ballast::Index index_of(PyObject* item) {
  if (PySlice_Check(item))
    return ballast::Slice{bound_of(item, "start"), bound_of(item, "stop"), bound_of(item, "step")};
  if (item == Py_Ellipsis) return ballast::ellipsis;
  if (item == Py_None) return ballast::new_axis;
  // True is 1 for Python and a mask for NumPy: neither is meant.
  if (!PyBool_Check(item) && PyIndex_Check(item) != 0) return integer_of(item);
  PyErr_Format(PyExc_TypeError, "ints, slices, ... and None are understood as indices, not %R", item);
  throw Raised{};
}

}  // namespace

std::vector<ballast::Index> indices_of(PyObject* subscript) {
  std::vector<ballast::Index> indices;
  if (!PyTuple_Check(subscript)) {
    indices.push_back(index_of(subscript));
    return indices;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(subscript); ++i)
    indices.push_back(index_of(PyTuple_GetItem(subscript, i)));
  return indices;
}

}  // namespace py
