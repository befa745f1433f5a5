// SPDX-License-Identifier: Apache-2.0
// Keys of a checkpoint as names of C++.
#pragma once

#include <string>
#include <string_view>

namespace tool {

/// 0, 7, 12: a position, without leading zeros.
[[nodiscard]] bool is_position(std::string_view text);

/// Fit for a field as it is, keywords apart. A trailing underscore is not: reflection drops it.
[[nodiscard]] bool is_identifier(std::string_view text);

/// Why a struct or a namespace cannot have this name, in words that follow it; empty when it can.
[[nodiscard]] std::string why_no_name(std::string_view text);

/// A keyword, or what headers of the system are known to define as macros: such a field gets an underscore,
/// which reflection drops again.
[[nodiscard]] bool is_taken_by_cpp(std::string_view text);

/// "conv_blocks" → "ConvBlocks"; "Part" when nothing is left.
[[nodiscard]] std::string camel_case(std::string_view text);

/// ASCII alone: "Conv1D" → "conv1d"
[[nodiscard]] std::string lowered(std::string_view text);

/// In quotes; everything unusual as an octal escape, which ends after three digits whatever follows.
[[nodiscard]] std::string cpp_literal(std::string_view text);

}  // namespace tool
