// SPDX-License-Identifier: Apache-2.0
// The module's functions that read and write files, and those that compare and judge them.
#pragma once

#include "py.h"

namespace py {

void add_file_functions(PyObject* module);
void add_report_functions(PyObject* module);

}  // namespace py
