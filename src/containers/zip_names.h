// SPDX-License-Identifier: Apache-2.0
// Names of zip entries: which are allowed, and which are the same to a reader that ignores case.
#pragma once

#include <string>
#include <string_view>

namespace ballast::containers {

/// Errc::bad_name or Errc::path_escape. `utf8`: the entry says its name is UTF-8.
void check_zip_name(std::string_view name, bool utf8, const std::string& where);

/// ASCII letters, digits and single slashes between them, as nearly all names are: always allowed.
[[nodiscard]] bool is_plain_zip_name(std::string_view name) noexcept;

/// Up to and with the last slash.
[[nodiscard]] inline std::string_view zip_folder_of(std::string_view name) noexcept {
  return name.substr(0, name.rfind('/') + 1);
}

/// ASCII letters in lower case, as PyTorch's zip reader compares.
void fold_case(std::string_view name, std::string& out);
[[nodiscard]] bool equal_any_case(std::string_view a, std::string_view b) noexcept;

}  // namespace ballast::containers
