// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tensor.h"

namespace py {
namespace {

using ballast::Kind;
using ballast::Value;

// A tuple or text as a key is hashed over and over, with all that is in it, however often it is shared.
constexpr std::uint64_t kLargestKey = 10'000;

// What Python does for the keys of all dicts and sets of a file: it hashes each with all that is in it, and
// compares it with those that have its hash. Python's hashes of numbers, and of tuples of them, are known to
// everybody: a file can be made of keys that all have one.
class KeyCosts {
 public:
  // The keys that follow are those of another container.
  void begin() { seen_.clear(); }

  // Before a key of `size` parts is put in.
  void take(const Value& value, PyObject* key, std::uint64_t size) {
    if (value.kind() == Kind::string || value.kind() == Kind::bytes) return;  // hashed with a seed, once
    most_ += kForEach;
    spent_ += size;
    constexpr std::int64_t kItself = std::int64_t{1} << 60U;  // up to there an integer is its own hash
    const bool is_small = value.kind() == Kind::integer && value.fits_int() && value.as_int() < kItself &&
                          value.as_int() > -kItself;
    if (!is_small) spent_ += size * seen_[PyObject_Hash(key)]++;
    if (spent_ <= most_) return;
    throw ballast::Error(
        ballast::Errc::expansion_limit, "keys",
        "of a dict or set are too costly for Python: too many have one hash, or they are tuples "
        "of very many parts (made to stop its reader?)");
  }

 private:
  static constexpr std::uint64_t kForEach = 64;

  std::uint64_t most_ = std::uint64_t{16} << 20U;
  std::uint64_t spent_ = 0;
  std::map<Py_hash_t, std::uint64_t> seen_;  // ordered: its places cannot be chosen either
};

class Converter {
 public:
  Converter() {
    const Ref module(PyImport_ImportModule("ballast._checkpoint"));
    object_class_ = Ref(PyObject_GetAttrString(module.get(), "Object"));
  }

  Ref convert(const Value& value) {
    Ref result = make(value);
    while (!unfilled_.empty()) {
      const auto [source, target] = std::move(unfilled_.back());
      unfilled_.pop_back();
      fill(source, target.get());
    }
    return result;
  }

 private:
  struct Made {
    Ref object;
    std::uint64_t size = 1;  // with everything in it, shared parts counted each time
  };

  static bool is_container(Kind kind) {
    return kind == Kind::list || kind == Kind::dict || kind == Kind::set || kind == Kind::object;
  }

  // Made once, however many refer to it, as Python has it.
  static bool is_large(const Value& value) {
    constexpr std::size_t kSmall = 64;
    switch (value.kind()) {
      case Kind::integer:
        return !value.fits_int();
      case Kind::string:
        return value.as_string().size() > kSmall;
      case Kind::bytes:
        return value.as_bytes().size() > kSmall;
      default:
        return value.kind() == Kind::tensor;
    }
  }

  Ref make(const Value& value) {
    return value.kind() == Kind::tuple ? make_tuple(value).object : make_other(value);
  }

  // Containers are made empty and filled later, so that cycles find them; leaves are made at once.
  Ref make_other(const Value& value) {
    if (!is_container(value.kind()) && !is_large(value)) return leaf(value);
    const auto known = made_.find(value.identity());
    if (known != made_.end()) return known->second.object;
    if (!is_container(value.kind()))
      return made_.emplace(value.identity(), Made{leaf(value)}).first->second.object;
    Ref object = shell(value);
    made_.emplace(value.identity(), Made{object});
    unfilled_.emplace_back(value, object);
    return object;
  }

  Ref shell(const Value& value) {
    switch (value.kind()) {
      case Kind::list:
        return Ref(PyList_New(0));
      case Kind::dict:
        return Ref(PyDict_New());
      case Kind::set:
        return Ref(PySet_New(nullptr));
      default:
        break;
    }
    return call(object_class_.get(), to_python(value.type()), to_python(value.is_global()));
  }

  static Ref integer(const Value& value) {
    if (value.fits_int()) return to_python(value.as_int());
    const std::string digits = value.as_decimal();
    if (PyObject* number = PyLong_FromString(digits.c_str(), nullptr, 10)) return Ref(number);
    PyErr_Clear();  // longer than Python wants to convert
    return to_python(digits);
  }

  static Ref leaf(const Value& value) {
    switch (value.kind()) {
      case Kind::boolean:
        return to_python(value.as_bool());
      case Kind::integer:
        return integer(value);
      case Kind::floating:
        return to_python(value.as_float());
      case Kind::complex:
        return Ref(PyComplex_FromDoubles(value.as_complex().real(), value.as_complex().imag()));
      case Kind::string:
        return to_python(value.as_string());
      case Kind::bytes: {
        const auto bytes = value.as_bytes();
        return Ref(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                             static_cast<Py_ssize_t>(bytes.size())));
      }
      case Kind::tensor:
        return wrap(value.as_tensor());
      default:
        return none();
    }
  }

  // Tuples need what is in them first; a stack of our own, because files nest them as deep as they like.
  Made make_tuple(const Value& root) {
    struct Open {
      Value value;
      std::vector<Ref> done = {};
      std::uint64_t size = 1;
    };

    std::vector<Open> open;
    open.push_back({root});
    for (;;) {
      Open& top = open.back();
      if (top.done.size() < top.value.size()) {
        const Value child = top.value.element(top.done.size());
        const auto known = made_.find(child.identity());
        if (child.kind() == Kind::tuple && known == made_.end()) {
          open.push_back({child});
        } else if (child.kind() == Kind::tuple) {
          top.size = std::min(top.size + known->second.size, kLargestKey + 1);
          top.done.push_back(known->second.object);
        } else {
          top.size = std::min(top.size + 1, kLargestKey + 1);
          top.done.push_back(make_other(child));
        }
        continue;
      }
      Made made{Ref(PyTuple_New(static_cast<Py_ssize_t>(top.done.size()))), top.size};
      for (std::size_t i = 0; i < top.done.size(); ++i)
        check(PyTuple_SetItem(made.object.get(), static_cast<Py_ssize_t>(i), top.done[i].release()));
      made_.insert_or_assign(top.value.identity(), made);
      open.pop_back();
      if (open.empty()) return made;
    }
  }

  // Something Python can use as a key; what it cannot, by its one-line description.
  Ref make_key(const Value& value) {
    Made made;
    if (value.kind() == Kind::tuple) {
      const auto known = made_.find(value.identity());
      made = known != made_.end() ? known->second : make_tuple(value);
    } else {
      made.object = make_other(value);
    }
    if (made.size <= kLargestKey && PyObject_Hash(made.object.get()) != -1) {
      costs_.take(value, made.object.get(), made.size);
      return made.object;
    }
    PyErr_Clear();
    return to_python(value.summary());
  }

  void fill(const Value& source, PyObject* target) {
    costs_.begin();
    switch (source.kind()) {
      case Kind::list:
        for (std::size_t i = 0; i < source.size(); ++i)
          check(PyList_Append(target, make(source.element(i)).get()));
        return;
      case Kind::set:
        for (std::size_t i = 0; i < source.size(); ++i)
          check(PySet_Add(target, make_key(source.element(i)).get()));
        return;
      case Kind::dict:
        for (std::size_t i = 0; i < source.size(); ++i)
          check(PyDict_SetItem(target, make_key(source.key(i)).get(), make(source.value(i)).get()));
        return;
      default:
        break;
    }
    set(target, "args", source.args());
    set(target, "kwargs", source.kwargs());
    set(target, "state", source.state());
    set(target, "items", source.items());
    set(target, "pairs", source.pairs());
    set(target, "attributes", source.attributes());
  }

  void set(PyObject* target, const char* name, const Value& value) {
    check(PyObject_SetAttrString(target, name, make(value).get()));
  }

  Ref object_class_;
  KeyCosts costs_;
  std::unordered_map<std::uint64_t, Made> made_;
  std::vector<std::pair<Value, Ref>> unfilled_;
};

}  // namespace

Ref to_python(const ballast::Value& value) {
  return Converter().convert(value);
}

std::vector<ballast::RenameRule> rename_rules_of(PyObject* pairs) {
  std::vector<ballast::RenameRule> rules;
  if (pairs == nullptr || pairs == Py_None) return rules;
  const Ref items(PyDict_Check(pairs) ? PyDict_Items(pairs)
                                      : in_python([&] { return PySequence_List(pairs); }));
  for (Py_ssize_t i = 0; i < PyList_Size(items.get()); ++i) {
    const Ref pair(PySequence_Tuple(PyList_GetItem(items.get(), i)));
    if (PyTuple_Size(pair.get()) != 2) {
      PyErr_SetString(PyExc_ValueError, "rename: pairs of a pattern and a replacement are needed");
      throw Raised{};
    }
    rules.push_back({std::string(text_of(PyTuple_GetItem(pair.get(), 0))),
                     std::string(text_of(PyTuple_GetItem(pair.get(), 1)))});
  }
  return rules;
}

}  // namespace py
