// SPDX-License-Identifier: Apache-2.0
// Files that two readers take for two things: a Safetensors file that unpickles, a pickle with a zip archive
// behind it, a tar whose first name is a pickle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/source_storage.h"

namespace ballast {

struct OtherReading {
  std::string format;        ///< "pickle", "zip", "tar", "safetensors", "gzip" or "hdf5"
  std::uint64_t offset = 0;  ///< of what makes it one: the import, the end record, the header
  std::string what;          ///< a sentence for people
};

/// What else than the thing Ballast opens it as these bytes could be read as, by readers that look elsewhere
/// than at the first bytes, or at nothing before they begin. Looks at the head, the tail and the opcodes a
/// pickle would begin with: a few MB at most of reading, whatever the size, and no memory to speak of. Empty
/// for honest files.
[[nodiscard]] std::vector<OtherReading> other_readings(const ByteSource& source);

}  // namespace ballast
