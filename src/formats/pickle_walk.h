// SPDX-License-Identifier: Apache-2.0
// Whether bytes that are something else would also get somewhere as a pickle. Nothing is interpreted: only
// the lengths of opcodes and the height of the stack are followed.
#pragma once

#include <cstdint>
#include <optional>

#include "tensor/source_storage.h"

namespace ballast {

/// Where an unpickler that begins at the first byte would first import or call something; none when it stops
/// or fails before. After very many opcodes: where that was, as no honest file gets so far.
[[nodiscard]] std::optional<std::uint64_t> first_pickle_import(const ByteSource& source);

}  // namespace ballast
