// SPDX-License-Identifier: Apache-2.0
// Members of a map or an array of an .mpk that may be configuration: nothing but nil, nested. Burn writes its
// variants and the lengths of its arrays so ({"Sigmoid": nil}, [nil, nil]), and asks for them again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"

namespace ballast::burn {

struct ConfigurationMembers {
  static constexpr std::size_t kLongest = 4096;  // characters of one layer's

  std::vector<std::pair<std::string, std::string>> nil;  ///< paths from here, JSON
  std::string json;
  bool is_configuration = true;  ///< all members so far
  bool is_long = false;          ///< more than any layer has

  /// `value`: its JSON, empty when it is no configuration.
  void add(const std::string& key, std::string value, bool is_array) {
    is_configuration = is_configuration && !value.empty();
    is_long = is_long || json.size() > kLongest;
    if (value.empty() || is_long) return;
    if (is_configuration || is_array) {
      if (!json.empty()) json += ',';
      if (!is_array) json += std::move(JsonWriter().value(key)).text() + ":";
      json += value;
    }
    // An absent Option is nil, and may be absent altogether; not so one in an array.
    if (is_array || value != "null") nil.emplace_back(key, std::move(value));
  }
};

}  // namespace ballast::burn
