// SPDX-License-Identifier: Apache-2.0
#include "value_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ballast/error.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

using ballast::Kind;
using ballast::Value;
using ballast::ValueWalk;

constexpr std::size_t kMostSteps = 1'000'000;
constexpr std::size_t kDeepestIndent = 100;  // levels; deeper ones stand where these do

ValueWalk::Limits walk_limits(const ValueLimits& limits) {
  ValueWalk::Limits result;
  result.steps = kMostSteps;
  if (!limits.all) result.depth = limits.depth;
  return result;
}

Style style_of(Kind kind) {
  switch (kind) {
    case Kind::tensor:
      return Style::cyan;
    case Kind::object:
      return Style::yellow;
    default:
      return Style::plain;
  }
}

// How many items of the container at each depth were printed.
class SiblingCount {
 public:
  explicit SiblingCount(const ValueLimits& limits) : limits_(limits) {}

  enum class Verdict { show, last, skip };

  // `last`: the first one too many, whose line says how many are left out; what lies below a skipped value is
  // skipped too.
  Verdict next(std::size_t depth) {
    counts_.resize(depth + 1, 0);
    const std::size_t index = counts_[depth]++;
    for (std::size_t level = 1; level < depth; ++level) {
      if (!limits_.all && counts_[level] > limits_.siblings) return Verdict::skip;
    }
    if (limits_.all || depth == 0 || index < limits_.siblings) return Verdict::show;
    return index == limits_.siblings ? Verdict::last : Verdict::skip;
  }

 private:
  ValueLimits limits_;
  std::vector<std::size_t> counts_;
};

}  // namespace

void print_values(Output& out, const Terminal& terminal, const Value& root, const ValueLimits& limits) {
  Table table({{"NAME"}, {"TYPE"}, {"VALUE"}});
  table.stream(out, terminal);
  ValueWalk walk(root, walk_limits(limits));
  SiblingCount siblings(limits);
  std::uint64_t characters = 0;
  std::uint64_t shown = 0;
  bool is_full = false;
  while (const auto step = walk.next()) {
    is_full = characters > limits.characters;
    if (is_full) break;
    const std::string indent(std::min(step->depth, kDeepestIndent) * 2, ' ');
    characters += indent.size();
    switch (siblings.next(step->depth)) {
      case SiblingCount::Verdict::skip:
        continue;
      case SiblingCount::Verdict::last:
        table.add({{indent + "...", Style::dim}, "", {"more; --all shows them", Style::dim}});
        continue;
      case SiblingCount::Verdict::show:
        break;
    }
    const std::string label = step->depth == 0 ? "(all)" : step->label;
    const std::string value = step->value.summary() + (step->repeated ? " (shown above)" : "");
    characters += label.size() + value.size();
    ++shown;
    table.add({indent + label,
               {ballast::display(step->value.type(), 60), Style::dim},
               {value, style_of(step->value.kind())}});
  }
  table.print(out, terminal);
  if (is_full || (walk.cut() && limits.all)) out.line(fmt::format("... cut after {} values", grouped(shown)));
}

namespace {

// Gives the number of characters that grow with the value.
std::uint64_t write_value(JsonStream& json, const Value& value) {
  json.member("kind", name(value.kind())).member("type", value.type());
  switch (value.kind()) {
    case Kind::none:
      json.member("value", nullptr);
      break;
    case Kind::boolean:
      json.member("value", value.as_bool());
      break;
    case Kind::integer: {
      if (value.fits_int()) {
        json.member("value", value.as_int());
        break;
      }
      const std::string literal = value.summary();  // a large one is told by its size
      json.member("value", literal);
      return literal.size();
    }
    case Kind::floating:
      json.member("value", value.as_float());
      break;
    case Kind::complex:
      json.key("value").begin_array().value(value.as_complex().real()).value(value.as_complex().imag()).end();
      break;
    case Kind::string:
      json.member("value", value.as_string());
      return value.as_string().size();
    case Kind::bytes:
      json.member("size", value.as_bytes().size());
      break;
    case Kind::tensor: {
      const ballast::Tensor tensor = value.as_tensor();
      json.member("dtype", ballast::info(tensor.dtype()).code).key("shape");
      json.value(ballast::ShapeView(tensor.shape()));
      break;
    }
    case Kind::object:
      break;
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::dict:
      json.member("size", value.size());
      break;
  }
  return 0;
}

}  // namespace

void write_values(JsonStream& json, const Value& root, const std::string& path, const ValueLimits& limits) {
  std::string here = path;
  std::vector<std::size_t> lengths;  // of the paths above, by depth
  std::uint64_t characters = 0;
  bool is_full = false;
  ValueWalk walk(root, walk_limits(limits));
  json.key("values").begin_rows();
  while (const auto step = walk.next()) {
    is_full = characters > limits.characters;
    if (is_full) break;
    lengths.resize(step->depth);
    if (step->depth > 0) {
      here.resize(lengths.back());
      if (!here.empty()) here += '.';
      here += step->label;
    }
    lengths.push_back(here.size());
    json.begin_object().member("path", here);
    characters += here.size() + write_value(json, step->value);
    if (step->repeated) json.member("repeated", true);
    json.end();
  }
  json.end();
  if (is_full || (walk.cut() && limits.all)) json.member("values_cut", true);
}

}  // namespace tool
