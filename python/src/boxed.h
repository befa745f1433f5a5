// SPDX-License-Identifier: Apache-2.0
// Python types that hold one C++ value. They are made by the module alone, never by a call of the type.
#pragma once

#include <new>

#include "py.h"

namespace py {

template <class Value>
struct Boxed {
  PyObject head;
  Value value;
};

template <class Value>
Value& value_of(PyObject* object) {
  return reinterpret_cast<Boxed<Value>*>(object)->value;
}

/// An object of `type`, which is made from Boxed<Value> or inherits from such a one.
template <class Value>
Ref allocate(PyTypeObject* type, Value value) {
  Ref object(PyType_GenericAlloc(type, 0));
  new (&value_of<Value>(object.get())) Value(std::move(value));
  return object;
}

template <class Value>
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  value_of<Value>(self).~Value();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

inline PyObject* refuse_new(PyTypeObject* type, PyObject* /*args*/, PyObject* /*kwargs*/) {
  PyErr_Format(PyExc_TypeError, "%R cannot be made by hand: ballast.open() gives them",
               reinterpret_cast<PyObject*>(type));
  return nullptr;
}

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

inline PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec& spec) {
  Ref type(PyType_FromSpec(&spec));
  add_object(module, name, type);
  return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace py
