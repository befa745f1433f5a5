// SPDX-License-Identifier: Apache-2.0
// JSON as a Value: objects are dicts, arrays are lists, whole numbers are integers of any size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ballast/value.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class JsonWriter;

/// Errc::bad_json or Errc::bad_utf8 with the offset; `where` is the place for messages. A key twice in one
/// object is Errc::duplicate_key.
[[nodiscard]] Value parse_json(std::string_view text, const std::string& where);
/// The same for a file of at most `kMaxJsonFile` bytes.
[[nodiscard]] Value read_json(const std::string& path);

/// Errc::not_representable for what JSON does not have: NaN, infinities, bytes, tensors, objects, keys that
/// are not text.
[[nodiscard]] std::string write_json(const Value& value, const std::string& where);
/// The same as part of a larger text.
void write_json(JsonWriter& json, const Value& value, const std::string& where);

inline constexpr std::uint64_t kMaxJsonFile = 64U << 20U;

}  // namespace ballast

#pragma GCC visibility pop
