// SPDX-License-Identifier: Apache-2.0
// Templates of Jinja's that lie beside a model, or in its configurations.
#pragma once

#include <string_view>

namespace ballast {

/// Whether a template ("{{ … }}") asks for the insides of Python's objects, by which it gets out of a loader
/// that does not confine it; or cannot be told not to. False for text that is no template.
[[nodiscard]] bool reaches_into_python(std::string_view text);

}  // namespace ballast
