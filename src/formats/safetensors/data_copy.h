// SPDX-License-Identifier: Apache-2.0
// The data section, written: what lies in files goes from file to file inside the kernel, the rest through a
// small buffer, by several threads on disjoint ranges of the output.
#pragma once

#include "ballast/safetensors.h"
#include "base/atomic_file.h"
#include "formats/safetensors/layout.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::safetensors {

/// Every tensor of `checkpoint` to its place. Throws Errc::file_changed when a source changed meanwhile.
void copy_data(const Checkpoint& checkpoint, const Layout& layout, AtomicFile& out, const Progress& progress);

/// One whole tensor to `offset`, through a buffer.
void copy_tensor(const Tensor& tensor, AtomicFile& out, std::uint64_t offset);

}  // namespace ballast::safetensors

#pragma GCC visibility pop
