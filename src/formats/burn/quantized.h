// SPDX-License-Identifier: Apache-2.0
// Tensors that Burn quantized (dtype QFloat): integers, then scales, in one piece; how is said by a scheme
// beside the dtype. All values, stores and scales of Burn 0.23 are computed back; of what is not known
// (tables, blocks of old that could mean two things) the bytes are shown, so that one such tensor does not
// hide the rest of its file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "base/budget.h"

namespace ballast::burn {

/// A scheme as a file says it, nested keys joined by dots: {"value": "Q8S", "store.PackedU32": "0", …}.
using QuantScheme = std::map<std::string, std::string>;

/// Errc::bad_burn for more than any scheme has.
void put(QuantScheme& scheme, const std::string& path, std::string_view value, const std::string& where,
         Budget& budget);

/// `raw`: all bytes, as U8. F32 of the shape where the scheme is known, else `raw` itself; a note says which.
[[nodiscard]] Tensor read_quantized(const QuantScheme& scheme, const Tensor& raw,
                                    const std::vector<std::int64_t>& shape, std::string_view tensor,
                                    std::vector<std::string>& notes);

}  // namespace ballast::burn
