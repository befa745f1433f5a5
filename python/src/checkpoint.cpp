// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.h"

#include <algorithm>
#include <map>

#include "ballast/quantized.h"
#include "ballast/steps.h"
#include "boxed.h"
#include "frameworks.h"
#include "memory.h"
#include "steps.h"
#include "tensor.h"
#include "values.h"
#include "watch.h"

namespace py {
namespace {

PyTypeObject* checkpoint_type = nullptr;
PyTypeObject* checkpoint_class = nullptr;

const ballast::Checkpoint& own(PyObject* self) {
  return value_of<ballast::Checkpoint>(self);
}

std::vector<std::string_view> names_of(const ballast::Checkpoint& checkpoint) {
  std::vector<std::string_view> names;
  names.reserve(checkpoint.size());
  for (const ballast::Entry entry : checkpoint) names.push_back(entry.name);
  return names;
}

Ref list_of_names(const std::vector<std::string_view>& names) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(names.size())));
  for (std::size_t i = 0; i < names.size(); ++i)
    check(PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), to_python(names[i]).release()));
  return list;
}

// In the order of the file, which is that of the data.
PyObject* names(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] { return list_of_names(names_of(own(self))); });
}

PyObject* sorted_names(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    auto sorted = names_of(own(self));
    std::sort(sorted.begin(), sorted.end());
    return list_of_names(sorted);
  });
}

PyObject* describe(PyObject* self, PyObject* name) {
  return guarded([&] {
    const ballast::Entry entry = own(self).at(text_of(name));
    return Ref(Py_BuildValue("(NNN)", to_python(info(entry.dtype).code).release(),
                             to_python(entry.shape).release(), to_python(entry.bytes).release()));
  });
}

PyObject* tensor(PyObject* self, PyObject* name) {
  return guarded([&] { return wrap(own(self).tensor(text_of(name))); });
}

// Every tensor of the checkpoint through `make`.
template <class Make>
Ref dict_of(const ballast::Checkpoint& checkpoint, Make& make) {
  Ref dict(PyDict_New());
  for (const ballast::Entry entry : checkpoint) {
    const Ref name = to_python(entry.name);
    check(PyDict_SetItem(dict.get(), name.get(), make(entry.tensor()).get()));
  }
  return dict;
}

PyObject* numpy_dict(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* ndarray = nullptr;
    PyObject* dtypes = nullptr;
    if (PyArg_ParseTuple(args, "OO", &ndarray, &dtypes) == 0) throw Raised{};
    ToNumpy make(ndarray, dtypes);
    return dict_of(own(self), make);
  });
}

PyObject* torch_dict(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* from_dlpack = nullptr;
    PyObject* table = nullptr;
    if (PyArg_ParseTuple(args, "OO", &from_dlpack, &table) == 0) throw Raised{};
    ToTorch make(from_dlpack, table);
    return dict_of(own(self), make);
  });
}

// (name, code, shape, address, bytes) of each; the address is 0 where the bytes do not lie there in row-major
// order.
PyObject* addresses(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    return list_of(own(self), [](const ballast::Entry& entry) {
      const ballast::Tensor tensor = entry.tensor();
      const bool plain =
          tensor.has_data() && tensor.is_contiguous() && tensor.numel() > 0 && tensor.bit_offset() % 8 == 0;
      std::uint64_t address = 0;
      if (plain) {
        make_ready(tensor);
        address = reinterpret_cast<std::uintptr_t>(tensor.storage()->data()) + tensor.bit_offset() / 8;
      }
      return Ref(Py_BuildValue("(NNNKK)", to_python(entry.name).release(),
                               to_python(info(entry.dtype).code).release(), to_python(entry.shape).release(),
                               static_cast<unsigned long long>(address),
                               static_cast<unsigned long long>(entry.bytes)));
    });
  });
}

PyObject* materialized(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    const Watch watch(work_of(own(self)));
    const ballast::Progress progress = watch.progress(nullptr);
    return wrap(watch.run([&] { return with_own_memory(own(self), progress); }));
  });
}

PyObject* prefetch(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    const Watch watch(work_of(own(self)));
    const ballast::Progress progress = watch.progress(nullptr);
    watch.run([&] {
      bring_in(own(self), progress);
      return true;
    });
    return none();
  });
}

PyObject* value(PyObject* self, PyObject* path) {
  return guarded([&] { return to_python(own(self).value(text_of(path))); });
}

PyObject* root(PyObject* self, PyObject* path) {
  return guarded([&] {
    if (path != Py_None) return wrap(ballast::root(own(self), text_of(path)));
    return wrap(ballast::find_root(own(self)).checkpoint);
  });
}

PyObject* rename(PyObject* self, PyObject* pairs) {
  return guarded([&] { return wrap(ballast::rename(own(self), rename_rules_of(pairs)).checkpoint); });
}

PyObject* filter(PyObject* self, PyObject* options) {
  return guarded([&] {
    const Options given(options);
    return wrap(ballast::filter(own(self), given.texts("include"), given.texts("exclude")));
  });
}

PyObject* steps(PyObject* self, PyObject* options) {
  return guarded([&] {
    const Options given(options);
    ballast::Steps steps;
    set_steps(steps, given);
    if (!given.flag("dequantize")) steps.quantized = ballast::OnQuantized::keep;
    if (given.flag("of_other")) steps = ballast::steps_of_other(steps, own(self));
    ballast::Stepped stepped = ballast::apply_steps(own(self), steps);
    const Ref checkpoint = wrap(std::move(stepped.checkpoint));
    return Dict().set("checkpoint", checkpoint).set("unmatched", stepped.unmatched).object();
  });
}

PyObject* dequantize(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] { return wrap(ballast::dequantize(own(self))); });
}

PyObject* with_metadata(PyObject* self, PyObject* metadata) {
  return guarded([&] { return wrap(ballast::with_metadata(own(self), metadata_of(metadata))); });
}

PyObject* ties(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    const ballast::Checkpoint& checkpoint = own(self);
    Ref dict(PyDict_New());
    for (const ballast::Tie& tie : ballast::ties(checkpoint))
      check(PyDict_SetItem(dict.get(), to_python(checkpoint[tie.tensor].name).get(),
                           to_python(checkpoint[tie.first].name).get()));
    return dict;
  });
}

PyObject* cast(PyObject* self, PyObject* options) {
  return guarded([&] {
    const Options given(options);
    const ballast::DType dtype = dtype_named(given.text("dtype"));
    return wrap(ballast::cast(own(self), dtype, given.texts("exclude")));
  });
}

Py_ssize_t length(PyObject* self) {
  return static_cast<Py_ssize_t>(own(self).size());
}

int contains(PyObject* self, PyObject* name) {
  if (!PyUnicode_Check(name)) return 0;
  try {
    return own(self).contains(text_of(name)) ? 1 : 0;
  } catch (...) {
    set_error();
    return -1;
  }
}

template <Ref (*read)(const ballast::Checkpoint&)>
PyObject* property(PyObject* self, void* /*closure*/) {
  return guarded([&] { return read(own(self)); });
}

Ref read_metadata(const ballast::Checkpoint& checkpoint) {
  return to_python(checkpoint.metadata);
}

Ref read_notes(const ballast::Checkpoint& checkpoint) {
  return to_python(checkpoint.notes);
}

Ref read_format(const ballast::Checkpoint& checkpoint) {
  return to_python(checkpoint.format.name());
}

Ref read_path(const ballast::Checkpoint& checkpoint) {
  return to_python(checkpoint.path);
}

Ref read_nbytes(const ballast::Checkpoint& checkpoint) {
  return to_python(checkpoint.total_bytes());
}

Ref read_has_tree(const ballast::Checkpoint& checkpoint) {
  return to_python(checkpoint.tree.has_value());
}

PyMethodDef methods[] = {
    {"_names", names, METH_NOARGS, nullptr},
    {"_sorted_names", sorted_names, METH_NOARGS, nullptr},
    {"_describe", describe, METH_O, nullptr},
    {"_tensor", tensor, METH_O, nullptr},
    {"_numpy_dict", numpy_dict, METH_VARARGS, nullptr},
    {"_torch_dict", torch_dict, METH_VARARGS, nullptr},
    {"_addresses", addresses, METH_NOARGS, nullptr},
    {"_in_memory", materialized, METH_NOARGS, nullptr},
    {"_prefetch", prefetch, METH_NOARGS, nullptr},
    {"_value", value, METH_O, nullptr},
    {"_root", root, METH_O, nullptr},
    {"_rename", rename, METH_O, nullptr},
    {"_filter", filter, METH_O, nullptr},
    {"_steps", steps, METH_O, nullptr},
    {"_cast", cast, METH_O, nullptr},
    {"_dequantize", dequantize, METH_NOARGS, nullptr},
    {"_with_metadata", with_metadata, METH_O, nullptr},
    {"_ties", ties, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"metadata", property<read_metadata>, nullptr, "A dict of str, or None when the file has none.", nullptr},
    {"notes", property<read_notes>, nullptr, "What the reader found worth saying, as sentences.", nullptr},
    {"format", property<read_format>, nullptr, "\"safetensors\", \"torch-zip\", …", nullptr},
    {"path", property<read_path>, nullptr, "Where it was opened.", nullptr},
    {"nbytes", property<read_nbytes>, nullptr, "Of all tensors.", nullptr},
    {"has_values", property<read_has_tree>, nullptr, "True when value() leads somewhere.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* register_class(PyObject* /*module*/, PyObject* type) {
  if (!is_first_interpreter()) return nullptr;
  if (PyType_Check(type) == 0 ||
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), checkpoint_type) == 0) {
    PyErr_SetString(PyExc_TypeError, "a subclass of _native.Checkpoint is needed");
    return nullptr;
  }
  Py_INCREF(type);
  checkpoint_class = reinterpret_cast<PyTypeObject*>(type);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"register_checkpoint_class", register_class, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_checkpoint_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(refuse_new)},
      {Py_tp_dealloc, slot(deallocate<ballast::Checkpoint>)},
      {Py_mp_length, slot(length)},
      {Py_sq_contains, slot(contains)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"ballast._native.Checkpoint", sizeof(Boxed<ballast::Checkpoint>), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  checkpoint_type = add_type(module, "Checkpoint", spec);
  checkpoint_class = checkpoint_type;
  check(PyModule_AddFunctions(module, functions));
}

Ref wrap(ballast::Checkpoint checkpoint) {
  return allocate(checkpoint_class, std::move(checkpoint));
}

const ballast::Checkpoint& checkpoint_of(PyObject* object) {
  if (PyObject_TypeCheck(object, checkpoint_type) == 0) {
    PyErr_Format(PyExc_TypeError, "a ballast.Checkpoint is needed, not %R",
                 reinterpret_cast<PyObject*>(Py_TYPE(object)));
    throw Raised{};
  }
  return own(object);
}

}  // namespace py
