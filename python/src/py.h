// SPDX-License-Identifier: Apache-2.0
// Python's C API as C++: references that count themselves, exceptions in both directions, the GIL as a scope.
// Only what the stable ABI has (Py_LIMITED_API): one module serves every Python from 3.11 on
// (docs/decisions/0010).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/error.h"
#include "ballast/runtime.h"
#include "ballast/shape.h"
#include "ending.h"

namespace py {

/// A Python exception on its way through C++. Empty: it is set in this thread already; else it came from
/// another thread and belongs to whoever catches it.
struct Raised {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
};

/// An owned reference.
class Ref {
 public:
  Ref() = default;

  /// Takes over a new reference; throws Raised when the call that should have made it failed.
  explicit Ref(PyObject* made) : object_(made) {
    if (made == nullptr) throw Raised{};
  }

  static Ref borrowed(PyObject* object) {
    Py_INCREF(object);
    return Ref(object);
  }

  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }

  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}

  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  ~Ref() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }

  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }

  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// What `callable` returns.
template <class... Arguments>
Ref call(PyObject* callable, const Arguments&... arguments) {
  return Ref(in_python([&] { return PyObject_CallFunctionObjArgs(callable, arguments.get()..., nullptr); }));
}

/// For calls that return -1 when they fail.
inline void check(int result) {
  if (result < 0) throw Raised{};
}

/// Under a name of the module.
inline void add_object(PyObject* module, const char* name, const Ref& object) {
  Py_INCREF(object.get());
  if (PyModule_AddObject(module, name, object.get()) == 0) return;
  Py_DECREF(object.get());
  throw Raised{};
}

inline Ref none() {
  return Ref::borrowed(Py_None);
}

/// False, with an ImportError, in every interpreter of the process but the one that asked first: classes and
/// memory are its own, and another's would be used after its end.
[[nodiscard]] bool is_first_interpreter() noexcept;

/// What C++ threw, as Python's error indicator. Only inside a catch block.
void set_error() noexcept;

/// Runs `body`, which gives a Ref, at the border to Python.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body().release();
  } catch (...) {
    set_error();
    return nullptr;
  }
}

// From C++ to Python.
[[nodiscard]] Ref to_python(std::string_view text);
[[nodiscard]] Ref to_python(std::int64_t number);
[[nodiscard]] Ref to_python(std::uint64_t number);
[[nodiscard]] Ref to_python(double number);
[[nodiscard]] Ref to_python(bool flag);
[[nodiscard]] Ref to_python(ballast::ShapeView shape);  ///< a tuple
[[nodiscard]] Ref to_python(const std::vector<std::string>& texts);
[[nodiscard]] Ref to_python(const std::optional<ballast::Metadata>& metadata);

inline Ref to_python(const std::string& text) {
  return to_python(std::string_view(text));
}

template <class T>
Ref to_python(const std::optional<T>& value) {
  return value ? to_python(*value) : none();
}

/// A dict that is being filled.
class Dict {
 public:
  Dict() : object_(PyDict_New()) {}

  template <class T>
  Dict& set(const char* key, const T& value) {
    return set(key, to_python(value));
  }

  Dict& set(const char* key, const char* text) { return set(key, to_python(std::string_view(text))); }

  Dict& set(const char* key, const Ref& value) {
    check(PyDict_SetItemString(object_.get(), key, value.get()));
    return *this;
  }

  [[nodiscard]] Ref object() const { return object_; }

 private:
  Ref object_;
};

/// A list of what `make` gives for each item.
template <class Items, class Make>
Ref list_of(const Items& items, const Make& make) {
  Ref list(PyList_New(0));
  for (const auto& item : items) check(PyList_Append(list.get(), make(item).get()));
  return list;
}

// From Python to C++; a TypeError where it is something else.
[[nodiscard]] std::string_view text_of(PyObject* object);  ///< valid as long as the object is
[[nodiscard]] std::string path_of(PyObject* object);       ///< str, bytes or os.PathLike
[[nodiscard]] std::int64_t integer_of(PyObject* object);   ///< anything with __index__
[[nodiscard]] ballast::Shape shape_of(PyObject* sequence);
[[nodiscard]] std::optional<ballast::Metadata> metadata_of(PyObject* dict_or_none);

/// Options by name, from a dict of keyword arguments.
class Options {
 public:
  explicit Options(PyObject* dict) : dict_(dict) {}

  [[nodiscard]] PyObject* find(const char* name) const;  ///< null when absent or None
  [[nodiscard]] bool flag(const char* name, bool otherwise = false) const;
  [[nodiscard]] std::string text(const char* name) const;
  [[nodiscard]] std::string path(const char* name) const;
  [[nodiscard]] double number(const char* name) const;
  [[nodiscard]] std::vector<std::string> texts(const char* name) const;

 private:
  PyObject* dict_;
};

/// OpenOptions::expansion; the usual one where nothing is said.
[[nodiscard]] double expansion_of(const Options& options);

}  // namespace py
