// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/value_json.h"

#include <cmath>
#include <set>
#include <vector>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/decimal.h"
#include "base/file.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "checkpoint/value_tree.h"

namespace ballast {
namespace {

Ref number(JsonScanner& in, ValueTree& tree) {
  const std::string_view text = in.number().text;
  if (text.find_first_of(".eE") == text.npos) return tree.decimal_integer(tree.store(text));
  const auto value = double_of(text);
  // The scanner has refused what is beyond the range by its own rounding; this is the range itself.
  if (!value) fail(Errc::bad_json, in.where(), "{} is no number a double has", quoted(text));
  return tree.floating(*value);
}

// All in one tree: a Value of its own takes hundreds of bytes, and a small file may hold very many.
Ref next_value(JsonScanner& in, ValueTree& tree) {
  switch (in.peek()) {
    case JsonScanner::Kind::object: {
      ValueNode* dict = tree.make(NodeKind::dict);
      std::set<std::string_view> seen;
      in.object([&](std::string_view key) {
        const std::string_view name = tree.store(key);
        if (!seen.insert(name).second)
          fail(Errc::duplicate_key, in.where(), "{} stands twice in one object", quoted(name));
        const Ref text = tree.string(name);
        const Ref pair[] = {text, next_value(in, tree)};
        tree.append_pairs(dict, pair);
      });
      return Ref(dict);
    }
    case JsonScanner::Kind::array: {
      std::vector<Ref> elements;
      in.array([&] { elements.push_back(next_value(in, tree)); });
      return tree.sequence(NodeKind::list, elements);
    }
    case JsonScanner::Kind::string:
      return tree.string(tree.store(in.string()));
    case JsonScanner::Kind::number:
      return number(in, tree);
    case JsonScanner::Kind::boolean: {
      const bool truth = in.take_text("true");
      if (!truth) in.skip_value();
      return Ref::boolean(truth);
    }
    case JsonScanner::Kind::null:
      in.null();
      break;
  }
  return Ref::none();
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
  write_json(json, value, where);
  return std::move(json).text();
}

void write_json(JsonWriter& json, const Value& value, const std::string& where) {
  write(json, value, where, 0);
}

Value parse_json(std::string_view text, const std::string& where) {
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8 text, so it is not JSON");
  std::string padded(text);
  padded.append(JsonScanner::kPadding, '\0');
  JsonScanner scanner(std::span(padded.data(), text.size()), where);
  const auto tree = std::make_shared<ValueTree>();
  // Half of what an open may take: the text lies in memory, too.
  const auto budget = std::make_shared<Budget>(where);
  budget->admit(text.size() / 2);
  budget->take(SharedBudget::part_of(Budget::kBytes) / 2);
  tree->charge(budget);
  const Ref root = next_value(scanner, *tree);
  tree->charge(nullptr);
  scanner.finish();
  return ValueTree::value(tree, root);
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
