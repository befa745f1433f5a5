// SPDX-License-Identifier: Apache-2.0
// JSON in which no key of an object comes twice: two readers that take different ones would see two things.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/json_scanner.h"

namespace ballast::seal {

/// JsonScanner::object() with keys that differ.
template <class Member>
void object_once(JsonScanner& json, Member&& member) {
  std::vector<std::string_view> keys;  // they lie in the text
  json.object([&](std::string_view key) {
    keys.push_back(key);
    member(key);
  });
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) fail(Errc::duplicate_key, json.where(), "has {} twice", quoted(*twice));
}

/// Takes a value nobody asks for; in it, too, keys differ.
inline void skip_once(JsonScanner& json) {
  if (json.peek() == JsonScanner::Kind::object)
    object_once(json, [&](std::string_view) { skip_once(json); });
  else if (json.peek() == JsonScanner::Kind::array)
    json.array([&] { skip_once(json); });
  else
    json.skip_value();
}

}  // namespace ballast::seal
