// SPDX-License-Identifier: Apache-2.0
// What a file that Ballast opens could be besides.
#pragma once

#include <span>
#include <vector>

#include "formats/one_reading.h"

namespace ballast {

/// Whether it begins with gzip's magic number, or a header of zlib's, of any window.
[[nodiscard]] bool may_be_packed(std::span<const std::byte> head);

/// readings_besides() the format that opens it, what unpacks by itself, and what is inside what unpacks.
[[nodiscard]] std::vector<OtherReading> other_readings(const ByteSource& source);

/// The same of bytes that no format of ours opens: a file as it lies on the disk, encrypted.
[[nodiscard]] std::vector<OtherReading> readings_of_bytes(const ByteSource& source);

}  // namespace ballast
