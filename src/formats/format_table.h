// SPDX-License-Identifier: Apache-2.0
// The table of formats, and what it says of a file.
#pragma once

#include <string_view>

#include "ballast/format.h"

namespace ballast {

/// What open() takes it for, by its content; `more` are asked first. Never none.
[[nodiscard]] Format format_of(const ByteSource& source, std::span<const Format> more = {});

/// An extension under which save() writes a format.
[[nodiscard]] bool has_known_extension(std::string_view path);

/// "safetensors, record, …": those that are written.
[[nodiscard]] std::string writable_names();

}  // namespace ballast
