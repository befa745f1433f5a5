// SPDX-License-Identifier: Apache-2.0
// For what hands a checkpoint's bytes on: damage that a checksum can tell must not get a new, fitting
// checksum.
#pragma once

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Errc::bad_crc when the bytes of a tensor, or those it is computed from, are not what the checksums beside
/// them in their file say (zip archives, records); on several threads. Files without checksums pass.
void require_sound(const Checkpoint& checkpoint);

}  // namespace ballast

#pragma GCC visibility pop
