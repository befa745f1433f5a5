// SPDX-License-Identifier: Apache-2.0
// What the tool cannot do ends as the library's refusals do: fail(code, where, "format {}", numbers...).
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "ballast/error.h"

namespace tool {

template <class... Args>
[[noreturn]] void fail(ballast::Errc code, std::string where, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw ballast::Error(code, std::move(where), fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tool
