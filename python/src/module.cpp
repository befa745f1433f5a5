// SPDX-License-Identifier: Apache-2.0
// ballast._native: what the Python files beside it are made of. Not an interface: it changes with them.
#include "ballast/dtype.h"
#include "checkpoint.h"
#include "files.h"
#include "tensor.h"

namespace {

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "ballast._native",
    "The compiled part of ballast.",
    -1,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

// Safetensors' codes and the names frameworks have for them.
py::Ref dtype_names() {
  py::Ref names(PyDict_New());
  for (std::size_t i = 0; i < ballast::kDTypeCount; ++i) {
    const ballast::DTypeInfo& row = info(static_cast<ballast::DType>(i));
    if (!row.in_safetensors || row.torch_name.empty()) continue;
    py::check(
        PyDict_SetItem(names.get(), py::to_python(row.code).get(), py::to_python(row.torch_name).get()));
  }
  return names;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): Python's rule
PyMODINIT_FUNC PyInit__native() {
  return py::guarded([] {
    py::end_well();
    py::Ref module(PyModule_Create(&definition));
    py::add_tensor_types(module.get());
    py::add_checkpoint_type(module.get());
    py::add_file_functions(module.get());
    py::add_report_functions(module.get());
    py::add_object(module.get(), "DTYPES", dtype_names());
    py::check(PyModule_AddStringConstant(module.get(), "__version__", BALLAST_VERSION));
    return module;
  });
}
