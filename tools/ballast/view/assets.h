// SPDX-License-Identifier: Apache-2.0
// The page: the files of view/page, as they are there, inside the program.
#pragma once

#include <span>
#include <string_view>

namespace tool::view {

struct Asset {
  std::string_view name;  ///< "app.js"
  std::string_view bytes;
};

/// Made by CMake from the folder.
[[nodiscard]] std::span<const Asset> assets() noexcept;

/// By the extension.
[[nodiscard]] std::string_view media_type(std::string_view name) noexcept;

}  // namespace tool::view
