// SPDX-License-Identifier: Apache-2.0
// files/F/objects: everything a PyTorch file holds, container by container. The order of a value's children
// is ValueWalk's, as `ballast show` prints them.

#include "ballast/error.h"
#include "view/app.h"

namespace tool::view {
namespace {

using ballast::Kind;
using ballast::Value;
using ballast::ValueWalk;

std::string_view kind_word(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "bool";
    case Kind::integer:
    case Kind::floating:
    case Kind::complex:
      return "number";
    case Kind::string:
      return "text";
    default:
      return name(kind);
  }
}

// Calls visit(index, step) for each child until it says false.
template <class Visit>
void for_each_child(const Value& of, Visit visit) {
  ValueWalk walk(of, {.steps = SIZE_MAX, .depth = 1});
  std::size_t index = 0;
  while (const auto step = walk.next()) {
    if (step->depth == 0) continue;
    if (!visit(index++, *step)) return;
  }
}

// Counting a long container's children one by one would be slow, and size() says how many there are.
std::size_t children_of(const Value& value) {
  constexpr std::size_t kCounted = 64;
  if (value.size() > kCounted) return value.size() + (value.attributes().is_none() ? 0 : 1);
  std::size_t count = 0;
  for_each_child(value, [&](std::size_t, const ValueWalk::Step&) { return ++count, true; });
  return count;
}

Value child_at(const Value& of, std::size_t wanted) {
  Value found;
  bool is_there = false;
  for_each_child(of, [&](std::size_t index, const ValueWalk::Step& step) {
    if (index != wanted) return true;
    found = step.value;
    is_there = true;
    return false;
  });
  if (!is_there) throw Refused{404, "not-found", "there is no such value"};
  return found;
}

// "[0,3]": from the root, child 0, and of that child 3.
std::vector<std::size_t> indices_of(const std::string& path) {
  if (path.empty()) return {};
  const auto list = Json::parse(path, nullptr, false);
  if (!list.is_array()) throw Refused{400, "invalid-argument", "path is no list of numbers"};
  std::vector<std::size_t> indices;
  for (const auto& index : list) {
    if (!index.is_number_unsigned()) throw Refused{400, "invalid-argument", "path is no list of numbers"};
    indices.push_back(index.get<std::size_t>());
  }
  return indices;
}

Json object_row(Document& document, const ValueWalk::Step& step, const std::string& path) {
  Json number = nullptr;
  if (step.value.kind() == Kind::tensor) {
    if (const auto known = document.number_of(step.value.as_tensor())) number = *known;
  }
  return {{"key", step.label},
          {"kind", kind_word(step.value.kind())},
          {"type", ballast::display(step.value.type())},
          {"text", step.value.summary()},
          {"children", children_of(step.value)},
          {"path", path},
          {"n", number}};
}

}  // namespace

Response get_objects(const Call& call) {
  Document& document = call.document();
  if (!document.checkpoint().tree) throw Refused{404, "not-found", "this format holds tensors alone"};
  std::string prefix = "[";
  Value value = *document.checkpoint().tree;
  const std::string path = call.query.text("path");
  for (const std::size_t index : indices_of(path)) {
    value = child_at(value, index);
    prefix += std::to_string(index) + ",";
  }
  const Page page = page_of_query(call.query);
  Json rows = Json::array();
  for_each_child(value, [&](std::size_t index, const ValueWalk::Step& step) {
    if (index >= page.offset + page.limit) return false;
    if (index >= page.offset)
      rows.push_back(object_row(document, step, prefix + std::to_string(index) + "]"));
    return true;
  });
  return json_response({{"path", path},
                        {"kind", kind_word(value.kind())},
                        {"text", value.summary()},
                        {"total", children_of(value)},
                        {"rows", std::move(rows)}});
}

}  // namespace tool::view
