// SPDX-License-Identifier: Apache-2.0
// What a conversion does to tensors that lie on common bytes.
#pragma once

#include <string>
#include <vector>

#include "ballast/convert.h"

namespace ballast {

/// Sentences for people: ties of the input that a step dissolved, ties the format has no words for, and
/// tensors that share bytes in other ways and are written apart.
[[nodiscard]] std::vector<std::string> sharing_notes(const Converted& done, Format format);

}  // namespace ballast
