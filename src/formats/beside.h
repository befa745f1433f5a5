// SPDX-License-Identifier: Apache-2.0
// Files that lie beside a model in its folder. Loaders take more from a folder than weights, and some of it
// runs: what is no model is inert by its kind, or nobody knows what it does.
#pragma once

#include <string>

#include "ballast/byte_source.h"

namespace ballast {

/// Whether it is of a kind that no loader runs: text that people read, vocabularies, pictures, and JSON that
/// names no code. `name` is its place in the folder.
[[nodiscard]] bool is_inert(const ByteSource& file, const std::string& name);

/// That it is code, or names some: "is Python, which …"; empty for other files.
[[nodiscard]] std::string what_it_runs(const ByteSource& file, const std::string& name);

/// That loaders take the file for a program because of its name, whatever is in it: "is called …"; empty for
/// other names.
[[nodiscard]] std::string program_by_name(const std::string& path);

}  // namespace ballast
