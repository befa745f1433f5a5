// SPDX-License-Identifier: Apache-2.0
// The rules file:
//   1. an object with "rules": an array of objects;
//   2. each has "match" and one of: "to" alone (rename), "drop": true, "alias": name, "split": {...},
//   "concat" or "stack": {...}, or
//   3. operations "transpose", "permute", "reshape", "slice", "cast", as members or, when the order matters,
//   in an array "do"; "to" renames after them.
#include <algorithm>
#include <array>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/fail.h"
#include "checkpoint/value_json.h"

namespace ballast::rules {
namespace {

class Parser {
 public:
  explicit Parser(std::string where) : where_(std::move(where)) {}

  std::vector<Rule> file(const Value& root) {
    const auto list = root.kind() == Kind::dict ? root.find("rules") : std::optional<Value>();
    if (!list || list->kind() != Kind::list)
      fail(Errc::bad_json, where_, R"(a rules file is an object with a list "rules")");
    only(root, {"rules", "schema", "comment"});
    std::vector<Rule> rules;
    for (std::size_t i = 0; i < list->size(); ++i) {
      place_ = fmt::format("{}: rule {}", where_, i + 1);
      rules.push_back(rule(list->element(i)));
    }
    return rules;
  }

 private:
  Rule rule(const Value& in) {
    if (in.kind() != Kind::dict) fail(Errc::bad_json, place_, "is not an object");
    only(in, {"match", "to", "drop", "alias", "split", "concat", "stack", "do", "transpose", "permute",
              "reshape", "slice", "cast", "comment"});
    const std::string match = text(need(in, "match"), "match");
    one_action(in);
    if (const auto drop = in.find("drop")) {
      if (drop->kind() != Kind::boolean || !drop->as_bool())
        fail(Errc::bad_json, place_, R"("drop" can only be true)");
      return Drop{match};
    }
    if (const auto alias = in.find("alias")) return Alias{match, new_name(*alias, "alias")};
    if (const auto part = in.find("split")) return split(match, *part);
    if (const auto part = in.find("concat")) return join<Concat>(match, *part);
    if (const auto part = in.find("stack")) return join<Stack>(match, *part);
    Change change{match, {}, {}};
    if (const auto list = in.find("do")) {
      if (list->kind() != Kind::list)
        fail(Errc::bad_json, place_, R"("do" is {}, not a list)", list->summary());
      for (std::size_t i = 0; i < list->size(); ++i) {
        only(list->element(i), {"transpose", "permute", "reshape", "slice", "cast", "comment"});
        operations(list->element(i), change.operations);
      }
    }
    operations(in, change.operations);
    const auto to = in.find("to");
    if (change.operations.empty() && !to) fail(Errc::bad_json, place_, "says nothing to do");
    if (change.operations.empty()) return Rename{match, text(*to, "to")};  // may be empty: the match goes
    if (to) change.to = new_name(*to, "to");
    return change;
  }

  // What a rule does is one thing; a second one would be left undone.
  void one_action(const Value& in) const {
    std::string first;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::string key(in.key(i).as_string());
      if (key == "match" || key == "comment" || key == "to") continue;
      const bool is_operation =
          key == "transpose" || key == "permute" || key == "reshape" || key == "slice" || key == "cast";
      const std::string action = is_operation ? "an operation" : key;
      if (!first.empty() && first != action)
        fail(Errc::bad_json, place_, "does two things, {} and {}: make it two rules", first, action);
      first = action;
    }
    const bool may_rename = first.empty() || first == "an operation" || first == "do";
    if (!may_rename && in.contains("to"))
      fail(Errc::bad_json, place_, R"("to" beside {} means nothing: make it two rules)", quoted(first));
  }

  void operations(const Value& in, std::vector<Operation>& out) {
    if (in.kind() != Kind::dict) fail(Errc::bad_json, place_, "an operation is an object");
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::string_view name = in.key(i).as_string();
      const Value value = in.value(i);
      if (name == "transpose") {
        const auto dims = numbers(value, name);
        if (dims.size() != 2) fail(Errc::bad_json, place_, R"("transpose" takes two dimensions)");
        out.emplace_back(Transpose{dims[0], dims[1]});
      } else if (name == "permute") {
        out.emplace_back(Permute{numbers(value, name)});
      } else if (name == "reshape") {
        out.emplace_back(Reshape{numbers(value, name)});
      } else if (name == "slice") {
        out.emplace_back(Slice{number(value, "dim", 0), maybe(value, "start"), maybe(value, "stop"),
                               maybe(value, "step")});
        only(value, {"dim", "start", "stop", "step"});
      } else if (name == "cast") {
        out.emplace_back(Cast{dtype(text(value, name))});
      }
    }
  }

  Split split(const std::string& match, const Value& in) {
    only(in, {"to", "dim", "sizes"});
    Split result{match, texts(need(in, "to"), "to"), number(in, "dim", 0), {}};
    if (const auto sizes = in.find("sizes")) result.sizes = numbers(*sizes, "sizes");
    return result;
  }

  template <class Joined>
  Joined join(const std::string& match, const Value& in) {
    only(in, {"with", "to", "dim"});
    return {match, texts(need(in, "with"), "with"), new_name(need(in, "to"), "to"), number(in, "dim", 0)};
  }

  template <std::size_t N>
  void only(const Value& in, const std::array<std::string_view, N>& known) const {
    if (in.kind() != Kind::dict)
      fail(Errc::bad_json, place_.empty() ? where_ : place_, "an object is needed here, not {}",
           in.summary());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::string_view key = in.key(i).as_string();
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        fail(Errc::bad_json, place_.empty() ? where_ : place_, "{} is no member of it{}", quoted(key),
             did_you_mean(key, known));
      }
    }
  }

  template <std::size_t N>
  void only(const Value& in, const std::string_view (&known)[N]) const {
    only(in, std::to_array(known));
  }

  [[nodiscard]] Value need(const Value& in, std::string_view key) const {
    if (auto found = in.find(key)) return *found;
    fail(Errc::bad_json, place_, "has no {}", quoted(key));
  }

  [[nodiscard]] std::string text(const Value& in, std::string_view what) const {
    if (in.kind() != Kind::string)
      fail(Errc::bad_json, place_, "{} is {}, not text", quoted(what), in.summary());
    return std::string(in.as_string());
  }

  [[nodiscard]] std::string new_name(const Value& in, std::string_view what) const {
    std::string name = text(in, what);
    if (name.empty()) fail(Errc::bad_json, place_, "{} is empty: a tensor needs a name", quoted(what));
    return name;
  }

  [[nodiscard]] std::vector<std::string> texts(const Value& in, std::string_view what) const {
    if (in.kind() != Kind::list)
      fail(Errc::bad_json, place_, "{} is {}, not a list", quoted(what), in.summary());
    std::vector<std::string> result;
    for (std::size_t i = 0; i < in.size(); ++i) result.push_back(new_name(in.element(i), what));
    if (result.empty()) fail(Errc::bad_json, place_, "{} is an empty list", quoted(what));
    return result;
  }

  [[nodiscard]] std::int64_t integer(const Value& in, std::string_view what) const {
    if (in.kind() != Kind::integer || !in.fits_int())
      fail(Errc::bad_json, place_, "{} is {}, not a whole number", quoted(what), in.summary());
    return in.as_int();
  }

  [[nodiscard]] std::vector<std::int64_t> numbers(const Value& in, std::string_view what) const {
    if (in.kind() != Kind::list)
      fail(Errc::bad_json, place_, "{} is {}, not a list", quoted(what), in.summary());
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < in.size(); ++i) result.push_back(integer(in.element(i), what));
    return result;
  }

  [[nodiscard]] std::int64_t number(const Value& in, std::string_view key, std::int64_t otherwise) const {
    return maybe(in, key).value_or(otherwise);
  }

  [[nodiscard]] std::optional<std::int64_t> maybe(const Value& in, std::string_view key) const {
    const auto found = in.find(key);
    if (!found || found->is_none()) return std::nullopt;
    return integer(*found, key);
  }

  [[nodiscard]] DType dtype(const std::string& name) const {
    if (name == "i8" || name == "u8")
      fail(Errc::bad_dtype, place_, "{} has 8 bits to Safetensors and 64 to NumPy; write {} or {}",
           quoted(name), name == "i8" ? "int8" : "uint8", name == "i8" ? "int64" : "uint64");
    if (const auto found = dtype_from_name(name)) return *found;
    fail(Errc::bad_dtype, place_, "{} is no dtype", quoted(name));
  }

  std::string where_;
  std::string place_;
};

}  // namespace

std::vector<Rule> parse(std::string_view json, const std::string& where) {
  return Parser(where).file(parse_json(json, where));
}

std::vector<Rule> read(const std::string& path) {
  return Parser(display(path)).file(read_json(path));
}

}  // namespace ballast::rules
