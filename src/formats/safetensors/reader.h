// SPDX-License-Identifier: Apache-2.0
// Safetensors files that were opened before: what was looked at is what is read.
#pragma once

#include <memory>

#include "ballast/safetensors.h"

namespace ballast::safetensors {

/// As open(path), of a source opened with the options wanted.
[[nodiscard]] Checkpoint open(const ByteSource& source, Mode mode);

}  // namespace ballast::safetensors
