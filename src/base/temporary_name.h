// SPDX-License-Identifier: Apache-2.0
// Names of files that are being written, which say who writes them: what a dead process left can be told from
// what a living one needs.
#pragma once

#include <string>
#include <string_view>

namespace ballast {

/// In the folder of `target`, a path; a new one each time.
[[nodiscard]] std::string temporary_name(const std::string& target);

/// `name`, without folders, is that of a temporary for a file whose name begins with `target`, made by a
/// process of this machine that is dead now.
[[nodiscard]] bool is_left_behind(std::string_view name, std::string_view target);

}  // namespace ballast
