// SPDX-License-Identifier: Apache-2.0
// Files that two readers take for two things: a Safetensors file that unpickles, a pickle with a zip archive
// behind it, a tar whose first name is a pickle. What is known of them without the readers of other formats,
// so that writers can ask, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "base/atomic_file.h"
#include "tensor/source_storage.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

struct OtherReading {
  std::string format;  ///< "pickle", "zip", "tar", "safetensors", "gzip", "lzma", "flatbuffers" or "hdf5"
  std::uint64_t offset = 0;  ///< of what makes it one: the import, the end record, the header
  std::string what;          ///< a sentence for people
  Errc code = Errc::trailing_data;
};

/// The first bytes, as many as containers/magic.h wants to see.
[[nodiscard]] std::vector<std::byte> head_of(const ByteSource& source);

/// What a file is meant to be to readers of many things.
enum class Meant : std::uint8_t { none, pickle, zip, tar };

/// What else it could be read as, by readers that look elsewhere than at the first bytes, or at nothing
/// before they begin. Looks at the head, the tail and the opcodes a pickle would begin with: a few MB at most
/// of reading, whatever the size, and no memory to speak of. Empty for honest files.
[[nodiscard]] std::vector<OtherReading> readings_besides(const ByteSource& source, Meant meant);

/// Errc::not_representable when the bytes written so far, which are the whole file, would be something else
/// to somebody: what comes from a clean file must not become an attack.
void require_one_reading(const ByteSource& written, Meant meant);
void require_one_reading(const AtomicFile& written, Meant meant);

}  // namespace ballast

#pragma GCC visibility pop
