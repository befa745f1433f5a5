// SPDX-License-Identifier: Apache-2.0
// Options that a function does not know are refused.
#pragma once

#include <initializer_list>
#include <string_view>

#include "ballast/detail/file_options.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Errc::invalid_argument when an option is set that is none of `known`, by the names of the fields.
/// `overwrite` and `progress` are known everywhere. `who` begins the message: "safetensors::save()".
void require_known(const SaveOptions& options, std::string_view who,
                   std::initializer_list<std::string_view> known);

/// The same; `io` and `writable` are known everywhere.
void require_known(const OpenOptions& options, std::string_view who,
                   std::initializer_list<std::string_view> known);

}  // namespace ballast

#pragma GCC visibility pop
