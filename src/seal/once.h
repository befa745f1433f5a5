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

/// For what reads such JSON and knows what it wants of each member.
class OnceReader {
 protected:
  using Kind = JsonScanner::Kind;

  explicit OnceReader(JsonScanner& json) : json_(json) {}

  template <class Member>
  void object(std::string_view what, Member&& member) {
    expect(Kind::object, what, "an object");
    object_once(json_, member);
  }

  template <class Element>
  void array(std::string_view what, Element&& element) {
    expect(Kind::array, what, "a list");
    json_.array(element);
  }

  /// Lies in the text that is read.
  std::string_view text(std::string_view what) {
    expect(Kind::string, what, "a text");
    return json_.string();
  }

  [[nodiscard]] const std::string& where() const noexcept { return json_.where(); }

  void expect(Kind kind, std::string_view what, std::string_view wanted) {
    if (json_.peek() != kind) fail(Errc::bad_bundle, where(), "{} is not {}", quoted(what), wanted);
  }

  JsonScanner& json_;
};

}  // namespace ballast::seal
