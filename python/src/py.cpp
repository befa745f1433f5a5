// SPDX-License-Identifier: Apache-2.0
#include "py.h"

#include <new>

#include "ballast/runtime.h"

namespace py {
namespace {

// ballast._errors.make(code, where, what): the Python side decides which class an error is.
void set_ballast_error(const ballast::Error& error) {
  const Ref module(in_python([] { return PyImport_ImportModule("ballast._errors"); }));
  const Ref make(PyObject_GetAttrString(module.get(), "make"));
  const Ref code = to_python(name(error.code()));
  const Ref where = to_python(error.where());
  const Ref what = to_python(std::string_view(error.what()));
  const Ref exception = call(make.get(), code, where, what);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

}  // namespace

bool is_first_interpreter() noexcept {
  static PyInterpreterState* const first = PyInterpreterState_Get();
  if (PyInterpreterState_Get() == first) return true;
  PyErr_SetString(PyExc_ImportError,
                  "ballast works in one interpreter of a process, and another one has imported it already");
  return false;
}

void set_error() noexcept {
  try {
    try {
      throw;
    } catch (const Raised& raised) {
      if (raised.type != nullptr) PyErr_Restore(raised.type, raised.value, raised.traceback);
    } catch (const ballast::Error& error) {
      set_ballast_error(error);
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  } catch (...) {  // Raised, from set_ballast_error: it is set
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, "unknown error");
  }
}

Ref to_python(std::string_view text) {
  // What comes from a file is UTF-8 by then; messages may hold a path that is not.
  return Ref(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

Ref to_python(std::int64_t number) {
  return Ref(PyLong_FromLongLong(number));
}

Ref to_python(std::uint64_t number) {
  return Ref(PyLong_FromUnsignedLongLong(number));
}

Ref to_python(double number) {
  return Ref(PyFloat_FromDouble(number));
}

Ref to_python(bool flag) {
  return Ref::borrowed(flag ? Py_True : Py_False);
}

Ref to_python(ballast::ShapeView shape) {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i)
    check(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), to_python(shape[i]).release()));
  return tuple;
}

Ref to_python(const std::vector<std::string>& texts) {
  return list_of(texts, [](const std::string& text) { return to_python(text); });
}

Ref to_python(const std::optional<ballast::Metadata>& metadata) {
  if (!metadata) return none();
  Ref dict(PyDict_New());
  for (const auto& [key, value] : *metadata)
    check(PyDict_SetItem(dict.get(), to_python(key).get(), to_python(value).get()));
  return dict;
}

std::string_view text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) != 0 && !PyUnicode_Check(object)) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "a str is needed, not %R", reinterpret_cast<PyObject*>(Py_TYPE(object)));
    }
    throw Raised{};
  }
  return {text, static_cast<std::size_t>(size)};
}

std::string path_of(PyObject* object) {
  PyObject* encoded = nullptr;
  if (in_python([&] { return PyUnicode_FSConverter(object, &encoded); }) == 0) throw Raised{};
  const Ref bytes(encoded);
  char* text = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(bytes.get(), &text, &size));
  return {text, static_cast<std::size_t>(size)};
}

std::int64_t integer_of(PyObject* object) {
  const Ref index(PyNumber_Index(object));
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred() != nullptr) throw Raised{};
  return value;
}

ballast::Shape shape_of(PyObject* sequence) {
  const Ref fast(in_python([&] { return PySequence_Tuple(sequence); }));
  const Py_ssize_t rank = PyTuple_Size(fast.get());
  ballast::Shape shape;
  for (Py_ssize_t i = 0; i < rank; ++i) shape.push_back(integer_of(PyTuple_GetItem(fast.get(), i)));
  return shape;
}

std::optional<ballast::Metadata> metadata_of(PyObject* dict) {
  if (dict == nullptr || dict == Py_None) return std::nullopt;
  if (!PyDict_Check(dict)) {
    PyErr_Format(PyExc_TypeError, "argument 'metadata': a dict of str is needed, not %R",
                 reinterpret_cast<PyObject*>(Py_TYPE(dict)));
    throw Raised{};
  }
  ballast::Metadata metadata;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value) != 0)
    metadata.insert_or_assign(std::string(text_of(key)), std::string(text_of(value)));
  return metadata;
}

PyObject* Options::find(const char* name) const {
  if (dict_ == nullptr) return nullptr;
  PyObject* value = PyDict_GetItemString(dict_, name);
  return value == Py_None ? nullptr : value;
}

bool Options::flag(const char* name, bool otherwise) const {
  PyObject* value = find(name);
  if (value == nullptr) return otherwise;
  const int truth = PyObject_IsTrue(value);
  check(truth);
  return truth != 0;
}

std::string Options::text(const char* name) const {
  PyObject* value = find(name);
  return value == nullptr ? std::string() : std::string(text_of(value));
}

std::string Options::path(const char* name) const {
  PyObject* value = find(name);
  return value == nullptr ? std::string() : path_of(value);
}

double Options::number(const char* name) const {
  PyObject* value = find(name);
  if (value == nullptr) return 0;
  const double number = PyFloat_AsDouble(value);
  if (number == -1 && PyErr_Occurred() != nullptr) throw Raised{};
  return number;
}

double expansion_of(const Options& options) {
  return options.find("expansion") == nullptr ? ballast::kExpansion : options.number("expansion");
}

std::vector<std::string> Options::texts(const char* name) const {
  PyObject* value = find(name);
  if (value == nullptr) return {};
  if (PyUnicode_Check(value)) return {std::string(text_of(value))};
  const Ref fast(in_python([&] { return PySequence_Tuple(value); }));
  std::vector<std::string> texts;
  for (Py_ssize_t i = 0; i < PyTuple_Size(fast.get()); ++i)
    texts.emplace_back(text_of(PyTuple_GetItem(fast.get(), i)));
  return texts;
}

}  // namespace py
