// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/value_json.h"

#include <charconv>
#include <set>
#include <utility>
#include <vector>

#include "ballast/display.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json_scanner.h"
#include "base/utf8.h"

namespace ballast {
namespace {

Value number(const JsonScanner::Number& number) {
  const std::string_view text = number.text;
  if (text.find_first_of(".eE") == text.npos) return Value::integer(text);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return {value};
}

Value next_value(JsonScanner& in) {
  switch (in.peek()) {
    case JsonScanner::Kind::object: {
      std::vector<std::pair<Value, Value>> pairs;
      std::set<std::string, std::less<>> seen;
      in.object([&](std::string_view key) {
        if (!seen.emplace(key).second) fail(Errc::duplicate_key, in.where(), "{} stands twice in one object", quoted(key));
        const std::string name(key);
        pairs.emplace_back(Value(name), next_value(in));
      });
      return Value::dict(pairs);
    }
    case JsonScanner::Kind::array: {
      std::vector<Value> elements;
      in.array([&] { elements.push_back(next_value(in)); });
      return Value::list(elements);
    }
    case JsonScanner::Kind::string: return {in.string()};
    case JsonScanner::Kind::number: return number(in.number());
    case JsonScanner::Kind::boolean: {
      const bool truth = in.take_text("true");
      if (!truth) in.skip_value();
      return {truth};
    }
    case JsonScanner::Kind::null: in.null(); return {};
  }
  return {};
}

}  // namespace

Value parse_json(std::string_view text, const std::string& where) {
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8 text, so it is not JSON");
  std::string padded(text);
  padded.append(JsonScanner::kPadding, '\0');
  JsonScanner scanner(std::span(padded.data(), text.size()), where);
  Value value = next_value(scanner);
  scanner.finish();
  return value;
}

Value read_json(const std::string& path) {
  const auto file = File::open(path);
  if (file->size() > kMaxJsonFile) fail(Errc::header_too_large, display(path), "{} bytes is too large for a JSON file read whole ({} at most)", file->size(), kMaxJsonFile);
  const std::vector<std::byte> bytes = file->read(0, file->size());
  return parse_json(as_text(bytes), display(path));
}

}  // namespace ballast
