// SPDX-License-Identifier: Apache-2.0
// What a file that Ballast opens could be besides.
#pragma once

#include <vector>

#include "formats/one_reading.h"

namespace ballast {

/// readings_besides() the format that opens it, what unpacks by itself, and what is inside what unpacks.
[[nodiscard]] std::vector<OtherReading> other_readings(const ByteSource& source);

}  // namespace ballast
