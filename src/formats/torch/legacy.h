// SPDX-License-Identifier: Apache-2.0
// The numbers a legacy stream begins with: one place for its reader and its writer.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast::torch {

inline constexpr std::string_view kLegacyMagic = "119547037146038801333356";  // 0x1950A86A20F9469CFC6C
inline constexpr std::int64_t kLegacyVersion = 1001;

}  // namespace ballast::torch
