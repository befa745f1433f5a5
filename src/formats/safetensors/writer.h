// SPDX-License-Identifier: Apache-2.0
// A Safetensors file without its final name: for those who publish several files together.
#pragma once

#include <string>

#include "ballast/safetensors.h"
#include "base/atomic_file.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::safetensors {

/// All of the file; commit() is left to the caller.
void write_file(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress,
                Pack pack = Pack::none);

/// The same with tensors packed that gain by it.
void write_packed(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress, Pack pack);

}  // namespace ballast::safetensors

#pragma GCC visibility pop
