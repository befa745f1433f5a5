// SPDX-License-Identifier: Apache-2.0
// JSON as the tool writes it: ASCII only, so that no name can steer a terminal, and long arrays one item a
// line, so that grep and diff work on it. What grows with a file is written as it comes (JsonStream).
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"

namespace tool {

class Output;
using Json = nlohmann::ordered_json;

/// A document, written as it is given. The members of its outermost object stand one a line.
class JsonStream {
 public:
  explicit JsonStream(Output& out) : out_(out) {}

  JsonStream& begin_object() { return begin('{', '}', false); }

  JsonStream& begin_array() { return begin('[', ']', false); }

  /// An array; as a member of the outermost object its items stand one a line.
  JsonStream& begin_rows() { return begin('[', ']', levels_.size() == 1); }

  /// Of the innermost object or array.
  JsonStream& end();

  JsonStream& key(std::string_view name);

  JsonStream& value(std::string_view text);

  JsonStream& value(const char* text) { return value(std::string_view(text)); }

  JsonStream& value(const std::string& text) { return value(std::string_view(text)); }

  JsonStream& value(bool truth) { return literal(truth ? "true" : "false"); }

  JsonStream& value(std::nullptr_t) { return literal("null"); }

  /// null for NaN and infinities, which JSON has no words for.
  JsonStream& value(double number);
  JsonStream& value(ballast::ShapeView shape);
  JsonStream& value(const Json& any);

  template <std::integral Integer>
  JsonStream& value(Integer number) {
    return literal(std::to_string(number));
  }

  template <class Value>
  JsonStream& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

  /// How many objects and arrays are open.
  [[nodiscard]] std::size_t depth() const noexcept { return levels_.size(); }

  /// A place to come back to.
  struct Mark {
    std::uint64_t written;
    std::size_t depth;
    bool first;
  };

  [[nodiscard]] Mark mark() const noexcept {
    return {written_ + text_.size(), levels_.size(), levels_.empty() || levels_.back().first};
  }

  /// Takes back what came since the mark; false, and the document as it is, when it has left already.
  [[nodiscard]] bool take_back(const Mark& mark);
  /// The end of the document.
  void finish();

 private:
  struct Level {
    char close;
    bool rows;
    bool first;  // nothing stands in it yet
  };

  JsonStream& begin(char open, char close, bool rows);
  JsonStream& literal(std::string_view text);
  void separate();
  void hand_on();

  Output& out_;
  std::string text_;  // not handed on yet
  std::uint64_t written_ = 0;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

/// On one line.
[[nodiscard]] std::string to_text(const Json& value);
/// Members one a line; the items of a top-level array of objects one a line. For what does not grow with a
/// file.
void write_document(Output& out, const Json& object);
/// The file's metadata, as an object.
void write_metadata(JsonStream& json, const ballast::Metadata& metadata);

[[nodiscard]] Json error_object(std::string_view code, std::string_view where, std::string_view message);
[[nodiscard]] Json shape_array(ballast::ShapeView shape);
/// null for NaN and infinities, which JSON has no words for.
[[nodiscard]] Json number_or_null(double value);

}  // namespace tool
