// SPDX-License-Identifier: Apache-2.0
#include "value_lines.h"

#include <fmt/format.h>

#include <vector>

#include "ballast/display.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

using ballast::Kind;
using ballast::Value;
using ballast::ValueWalk;

constexpr std::size_t kMostSteps = 1'000'000;

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
  ValueWalk walk(root, walk_limits(limits));
  SiblingCount siblings(limits);
  while (const auto step = walk.next()) {
    const std::string indent(step->depth * 2, ' ');
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
    table.add({indent + label,
               {ballast::display(step->value.type(), 60), Style::dim},
               {value, style_of(step->value.kind())}});
  }
  table.print(out, terminal);
  if (walk.cut() && limits.all) out.line(fmt::format("... cut after {} values", grouped(kMostSteps)));
}

namespace {

Json as_json(const Value& value) {
  Json object = {{"kind", name(value.kind())}, {"type", value.type()}};
  switch (value.kind()) {
    case Kind::none:
      object["value"] = nullptr;
      break;
    case Kind::boolean:
      object["value"] = value.as_bool();
      break;
    case Kind::integer:
      object["value"] = value.fits_int() ? Json(value.as_int()) : Json(value.as_decimal());
      break;
    case Kind::floating:
      object["value"] = number_or_null(value.as_float());
      break;
    case Kind::complex:
      object["value"] = {value.as_complex().real(), value.as_complex().imag()};
      break;
    case Kind::string:
      object["value"] = value.as_string();
      break;
    case Kind::bytes:
      object["size"] = value.as_bytes().size();
      break;
    case Kind::tensor: {
      const ballast::Tensor tensor = value.as_tensor();
      object["dtype"] = ballast::info(tensor.dtype()).code;
      object["shape"] = shape_array(tensor.shape());
      break;
    }
    case Kind::object:
      break;
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::dict:
      object["size"] = value.size();
      break;
  }
  return object;
}

}  // namespace

Json values_as_json(const Value& root, const std::string& path, const ValueLimits& limits) {
  Json values = Json::array();
  std::vector<std::string> paths;  // by depth
  ValueWalk walk(root, walk_limits(limits));
  while (const auto step = walk.next()) {
    paths.resize(step->depth + 1);
    std::string& here = paths[step->depth];
    here = step->depth == 0
               ? path
               : (paths[step->depth - 1].empty() ? step->label : paths[step->depth - 1] + '.' + step->label);
    Json entry = {{"path", here}};
    entry.update(as_json(step->value));
    if (step->repeated) entry["repeated"] = true;
    values.push_back(std::move(entry));
  }
  return values;
}

}  // namespace tool
