// SPDX-License-Identifier: Apache-2.0
// JSON, written: no white space, members in the order they are given, strings escaped as serde_json does
// (which is what makes Safetensors headers byte-identical to the reference's). The same calls give the same
// bytes.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// `text` in quotes: \" \\ \b \f \n \r \t, other control characters as \u00xx, everything else as it is. It
/// must be UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// The shortest text that is read back as the same number, and as a number with a fraction: 2.0, -0.0.
[[nodiscard]] std::string float_text(double number);

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }

  JsonWriter& end_object() { return close('}'); }

  JsonWriter& begin_array() { return open('['); }

  JsonWriter& end_array() { return close(']'); }

  /// The value must follow.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);

  JsonWriter& value(const char* text) { return value(std::string_view(text)); }

  JsonWriter& value(bool truth) { return literal(truth ? "true" : "false"); }

  /// Shortest form that reads back the same; null for NaN and infinity, which JSON does not have.
  JsonWriter& value(double number);

  template <std::integral Integer>
  JsonWriter& value(Integer number) {
    return literal(std::to_string(number));
  }

  JsonWriter& null() { return literal("null"); }

  template <class Value>
  JsonWriter& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

  [[nodiscard]] const std::string& text() const& noexcept { return out_; }

  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& literal(std::string_view text);
  void separate();

  std::string out_;
  bool first_ = true;  // nothing stands before the next value or key in its object or array
};

}  // namespace ballast

#pragma GCC visibility pop
