// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/value_json.h"

#include <charconv>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "ballast/display.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
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
        if (!seen.emplace(key).second)
          fail(Errc::duplicate_key, in.where(), "{} stands twice in one object", quoted(key));
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
    case JsonScanner::Kind::string:
      return {in.string()};
    case JsonScanner::Kind::number:
      return number(in.number());
    case JsonScanner::Kind::boolean: {
      const bool truth = in.take_text("true");
      if (!truth) in.skip_value();
      return {truth};
    }
    case JsonScanner::Kind::null:
      in.null();
      return {};
  }
  return {};
}

constexpr std::size_t kDeepestJson = 500;  // deeper ones would cost stack, and are cycles

void write(JsonWriter& json, const Value& value, const std::string& where, std::size_t depth) {
  if (depth > kDeepestJson) fail(Errc::too_deep, where, "values are nested more than {} deep", kDeepestJson);
  switch (value.kind()) {
    case Kind::none:
      json.null();
      return;
    case Kind::boolean:
      json.value(value.as_bool());
      return;
    case Kind::integer:
      if (value.fits_int())
        json.value(value.as_int());
      else
        fail(Errc::not_representable, where, "{} is beyond 64 bits", value.summary());
      return;
    case Kind::floating:
      if (!std::isfinite(value.as_float()))
        fail(Errc::not_representable, where, "JSON has no {}", value.summary());
      json.value(value.as_float());
      return;
    case Kind::string:
      json.value(value.as_string());
      return;
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
      json.begin_array();
      for (std::size_t i = 0; i < value.size(); ++i) write(json, value.element(i), where, depth + 1);
      json.end_array();
      return;
    case Kind::dict:
      json.begin_object();
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (value.key(i).kind() != Kind::string)
          fail(Errc::not_representable, where, "JSON has no key {}", value.key(i).summary());
        json.key(value.key(i).as_string());
        write(json, value.value(i), where, depth + 1);
      }
      json.end_object();
      return;
    case Kind::complex:
    case Kind::bytes:
    case Kind::tensor:
    case Kind::object:
      break;
  }
  fail(Errc::not_representable, where, "JSON has no {}", value.summary());
}

}  // namespace

std::string write_json(const Value& value, const std::string& where) {
  JsonWriter json;
  write(json, value, where, 0);
  return std::move(json).text();
}

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
  if (file->size() > kMaxJsonFile)
    fail(Errc::header_too_large, display(path),
         "{} bytes is too large for a JSON file read whole ({} at most)", file->size(), kMaxJsonFile);
  const std::vector<std::byte> bytes = file->read(0, file->size());
  return parse_json(as_text(bytes), display(path));
}

}  // namespace ballast
