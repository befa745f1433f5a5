// SPDX-License-Identifier: Apache-2.0
// ballast._native: what the Python files beside it are made of. Not an interface: it changes with them.
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

}  // namespace

PyMODINIT_FUNC PyInit__native() {
  return py::guarded([] {
    py::Ref module(PyModule_Create(&definition));
    py::add_tensor_types(module.get());
    py::add_checkpoint_type(module.get());
    py::add_file_functions(module.get());
    py::add_report_functions(module.get());
    py::check(PyModule_AddStringConstant(module.get(), "__version__", BALLAST_VERSION));
    return module;
  });
}
