// SPDX-License-Identifier: Apache-2.0
// The version, for files that say who made them. CMake knows it.
#pragma once

namespace ballast {

inline constexpr const char* kVersionText = BALLAST_VERSION;

}  // namespace ballast
