// SPDX-License-Identifier: Apache-2.0
// A Safetensors file without its final name: for those who publish several files together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "ballast/safetensors.h"
#include "base/atomic_file.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::safetensors {

/// All of the file; commit() is left to the caller.
void write_file(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress,
                Pack pack = Pack::none);

/// Says the tensors' checksums in the metadata of the file; they come in the order of the checkpoint. It is
/// called before they are known, too, to see how much room they take.
using SayChecksums = std::function<void(Metadata& metadata, std::span<const std::uint64_t> xxh3)>;

/// The same with tensors packed that gain by it. `say`, where there is one, gets the checksum of every tensor
/// as it is unpacked.
void write_packed(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress, Pack pack,
                  const SayChecksums& say = {});

}  // namespace ballast::safetensors

#pragma GCC visibility pop
