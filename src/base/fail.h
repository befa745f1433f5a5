// SPDX-License-Identifier: Apache-2.0
// The one way to throw: fail(code, where, "format {}", numbers...). Strings that come from a file go through
// display() (error.h) first.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "ballast/error.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

[[noreturn]] void fail_text(Errc code, std::string where, const std::string& what);

template <class... Args>
[[noreturn]] void fail(Errc code, std::string where, fmt::format_string<Args...> format, Args&&... args) {
  fail_text(code, std::move(where), fmt::format(format, std::forward<Args>(args)...));
}

/// For a failed system call: `what` plus the text of `error_number` (an errno value), as the code that fits
/// it, or io_error.
[[noreturn]] void fail_errno(int error_number, std::string where, const std::string& what);

}  // namespace ballast

#pragma GCC visibility pop
