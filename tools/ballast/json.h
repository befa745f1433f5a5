// SPDX-License-Identifier: Apache-2.0
// JSON as the tool writes it: ASCII only, so that no name can steer a terminal, and long arrays one item a
// line, so that grep and diff work on it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ballast/checkpoint.h"

namespace tool {

class Output;
using Json = nlohmann::ordered_json;

/// On one line.
[[nodiscard]] std::string to_text(const Json& value);
/// Members one a line; the items of a top-level array of objects one a line.
void write_document(Output& out, const Json& object);

[[nodiscard]] Json error_object(std::string_view code, std::string_view where, std::string_view message);
[[nodiscard]] Json shape_array(ballast::ShapeView shape);
[[nodiscard]] Json metadata_object(const ballast::Checkpoint& checkpoint);
/// null for NaN and infinities, which JSON has no words for.
[[nodiscard]] Json number_or_null(double value);

}  // namespace tool
