// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON. Beyond not crashing: a second parser gives the same verdict and the same texts; skipping
// a value and reading it take the same; and what is read can be written and read again.
#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "ballast/error.h"
#include "base/json_scanner.h"
#include "checkpoint/value_json.h"
#include "watched.h"

namespace {

using namespace ballast;
using fuzzing::complain;

// What a document holds, without its numbers: the two parsers keep them differently.
void append_text(std::string& out, std::string_view text) {
  out += std::to_string(text.size()) + ':';
  out += text;
}

void describe(JsonScanner& json, std::string& out) {
  switch (json.peek()) {
    case JsonScanner::Kind::object:
      out += '{';
      json.object([&](std::string_view key) {
        append_text(out, key);
        describe(json, out);
      });
      out += '}';
      return;
    case JsonScanner::Kind::array:
      out += '[';
      json.array([&] { describe(json, out); });
      out += ']';
      return;
    case JsonScanner::Kind::string:
      append_text(out, json.string());
      return;
    case JsonScanner::Kind::number:
      static_cast<void>(json.number());
      out += 'n';
      return;
    case JsonScanner::Kind::boolean:
      if (json.take_text("true")) {
        out += 't';
      } else {
        json.skip_value();
        out += 'f';
      }
      return;
    case JsonScanner::Kind::null:
      json.null();
      out += '0';
      return;
  }
}

void describe(simdjson::dom::element element, std::string& out) {
  switch (element.type()) {
    case simdjson::dom::element_type::OBJECT:
      out += '{';
      for (const auto field : element.get_object()) {
        append_text(out, field.key);
        describe(field.value, out);
      }
      out += '}';
      return;
    case simdjson::dom::element_type::ARRAY:
      out += '[';
      for (const auto child : element.get_array()) describe(child, out);
      out += ']';
      return;
    case simdjson::dom::element_type::STRING:
      append_text(out, element.get_string().value_unsafe());
      return;
    case simdjson::dom::element_type::BOOL:
      out += element.get_bool().value_unsafe() ? 't' : 'f';
      return;
    case simdjson::dom::element_type::NULL_VALUE:
      out += '0';
      return;
    default:
      out += 'n';
  }
}

struct Outcome {
  std::string refused;  // the message; empty when it is read
  std::string text;
};

template <class Take>
Outcome scanned(std::string_view given, Take take) {
  Outcome outcome;
  std::string text(given);
  text.append(JsonScanner::kPadding, '\0');
  try {
    if (!is_utf8(given)) fail(Errc::bad_utf8, "fuzz", "no UTF-8");
    JsonScanner json({text.data(), given.size()}, "fuzz");
    take(json, outcome.text);
    json.finish();
  } catch (const Error& error) {
    outcome.refused = error.what();
  }
  return outcome;
}

bool says(const Outcome& outcome, std::string_view words) {
  return outcome.refused.find(words) != std::string::npos;
}

void compare(std::string_view given, const Outcome& ours) {
  static simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto error = parser.parse(simdjson::padded_string(given)).get(root);
  // Where the two rightly differ: whole numbers of any size, the very end of double's range, the depth
  // allowed, and a byte order mark, which simdjson may skip.
  if (error == simdjson::NUMBER_ERROR || error == simdjson::DEPTH_ERROR || says(ours, "out of range") ||
      says(ours, "nested deeper") || given.starts_with("\xEF\xBB\xBF"))
    return;
  if (error == simdjson::SUCCESS && !ours.refused.empty())
    complain("simdjson reads what we refuse: " + ours.refused);
  if (error != simdjson::SUCCESS && ours.refused.empty())
    complain(std::string("read, and simdjson refuses it: ") + simdjson::error_message(error));
  if (error != simdjson::SUCCESS) return;
  std::string theirs;
  describe(root, theirs);
  if (theirs != ours.text) complain("simdjson reads something else");
}

void check_round_trip(std::string_view given) {
  try {
    const Value value = parse_json(given, "fuzz");
    std::string text;
    try {
      text = write_json(value, "fuzz");
    } catch (const Error& error) {
      if (error.code() == Errc::not_representable) return;  // an integer beyond 64 bits
      complain("read, and not written: " + std::string(error.what()));
    }
    if (write_json(parse_json(text, "again"), "again") != text) complain("written and read again: " + text);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::Limits limits(size);
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  const Outcome read = scanned(given, [](JsonScanner& json, std::string& out) { describe(json, out); });
  const Outcome skipped = scanned(given, [](JsonScanner& json, std::string& /*out*/) { json.skip_value(); });
  if (read.refused.empty() != skipped.refused.empty()) complain("skipped is not as good as read");
  compare(given, read);
  check_round_trip(given);
  return 0;
}
