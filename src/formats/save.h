// SPDX-License-Identifier: Apache-2.0
// Which format a file would be saved in.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

/// `format` itself, or what the extension of `path` stands for. Errc::invalid_argument when there is no such
/// format.
[[nodiscard]] std::string_view format_of(const std::string& path, std::string_view format);

}  // namespace ballast
