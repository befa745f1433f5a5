// SPDX-License-Identifier: Apache-2.0
// The only place that sees simdjson.
#include <simdjson.h>

#include "base/json_scanner.h"

namespace ballast {

bool is_utf8(std::string_view text) noexcept {
  return simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace ballast
