// SPDX-License-Identifier: Apache-2.0
// Safetensors files that are open already: what was looked at is what is read.
#pragma once

#include <memory>

#include "ballast/safetensors.h"

namespace ballast {
class File;
}

namespace ballast::safetensors {

/// As open(path), of a file opened with the options wanted.
[[nodiscard]] Checkpoint open(const std::shared_ptr<const File>& file, Mode mode, bool writable = false);

}  // namespace ballast::safetensors
