// SPDX-License-Identifier: Apache-2.0
// Ways through a tree: dotted paths, the walk in order, and one value in one line.
#include <fmt/format.h>

#include <charconv>
#include <unordered_set>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/json_writer.h"
#include "checkpoint/value_tree.h"

namespace ballast {
namespace {

constexpr std::size_t kLargestShownInteger = 64;  // bytes or digits; its size is shown of a larger one

// What one path segment leads to: a key or attribute first, else an index.
std::optional<Value> step_into(const Value& from, std::string_view segment) {
  if (auto found = from.find(segment)) return found;
  // Subclasses: a list's items are appended, a named tuple's are its arguments.
  const Value list = from.kind() != Kind::object ? from : from.items().is_none() ? from.args() : from.items();
  if (list.kind() != Kind::list && list.kind() != Kind::tuple) return std::nullopt;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(segment.data(), segment.data() + segment.size(), index);
  if (error != std::errc{} || end != segment.data() + segment.size() || index >= list.size())
    return std::nullopt;
  return list.element(index);
}

// A choice made on the way: from `at`, the segment ended at `cut`.
struct Reading {
  Value at;
  std::size_t begin;
  std::size_t cut;
};

struct Reached {
  std::optional<Value> value;
  std::size_t reached = 0;  // characters of the path that led somewhere
};

// Longest keys first; when one leads nowhere, the next shorter one is tried.
Reached follow(const Value& root, std::string_view path) {
  if (path.empty()) return {root, 0};
  std::vector<Reading> choices = {{root, 0, path.size()}};
  std::size_t reached = 0;
  while (!choices.empty()) {
    Reading& top = choices.back();
    if (top.cut == std::string_view::npos) {
      choices.pop_back();
      continue;
    }
    const std::size_t end = top.cut;
    const auto next = step_into(top.at, path.substr(top.begin, end - top.begin));
    const std::size_t dot = end == top.begin ? std::string_view::npos : path.rfind('.', end - 1);
    top.cut = dot != std::string_view::npos && dot >= top.begin ? dot : std::string_view::npos;
    if (!next) continue;
    reached = std::max(reached, end);
    if (end == path.size()) return {next, end};
    choices.push_back({*next, end + 1, path.size()});
  }
  return {std::nullopt, reached};
}

std::string key_label(const Value& key) {
  switch (key.kind()) {
    case Kind::string:
      return display(key.as_string());
    case Kind::integer:
      return key.fits_int() ? std::to_string(key.as_int()) : key.summary();
    default:
      return key.summary();
  }
}

}  // namespace

std::optional<Value> Value::find_path(std::string_view path) const {
  return follow(*this, path).value;
}

Value value_at(const Value& root, std::string_view path, const std::string& where) {
  Reached there = follow(root, path);
  if (there.value) return *std::move(there.value);
  if (there.reached > 0)
    fail(Errc::not_found, where, "nothing at {}: {} is there, the rest is not", quoted(path),
         quoted(path.substr(0, there.reached)));
  std::vector<std::string> keys;
  for (std::size_t i = 0; root.kind() == Kind::dict && i < root.size(); ++i) {
    if (root.key(i).kind() == Kind::string) keys.emplace_back(root.key(i).as_string());
  }
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  fail(Errc::not_found, where, "nothing at {}{}", quoted(path), did_you_mean(path, names));
}

Value Value::at(std::string_view path) const {
  return value_at(*this, path, "value");
}

std::string Value::summary() const {
  const std::string_view plain = type();
  const auto counted = [&](std::string_view what) {
    const std::string text = fmt::format("{} of {}", what, size());
    return plain == what ? text : fmt::format("{} ({})", text, display(plain));
  };
  switch (kind()) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return as_bool() ? "True" : "False";
    case Kind::integer: {
      if (const Ref ref(ref_); ref.is_node() && ref.node()->kind == NodeKind::big_integer &&
                               ref.node()->size > kLargestShownInteger) {
        return fmt::format("integer of {} {}", ref.node()->size, ref.node()->flag ? "digits" : "bytes");
      }
      return as_decimal();
    }
    case Kind::floating:
      return float_text(as_float());
    case Kind::complex:
      return fmt::format("({}, {})", float_text(as_complex().real()), float_text(as_complex().imag()));
    case Kind::string:
      return plain == "str" ? quoted(as_string()) : fmt::format("{} {}", display(plain), quoted(as_string()));
    case Kind::bytes:
      return fmt::format("{} bytes", as_bytes().size());
    case Kind::list:
      return counted("list");
    case Kind::tuple:
      return counted("tuple");
    case Kind::set:
      return counted("set");
    case Kind::dict:
      return counted("dict");
    case Kind::tensor: {
      const TensorRecord& record = *Ref(ref_).node()->tensor;
      return fmt::format("{} {}", info(record.dtype).code, to_string(record.shape()));
    }
    case Kind::object:
      return is_global() ? fmt::format("class {}", display(plain)) : fmt::format("{} object", display(plain));
  }
  return {};
}

struct ValueWalk::State {
  struct Frame {
    Value value;
    std::size_t next = 0;
    std::size_t depth = 0;
  };

  // Child `index` of a value, with its label; nullopt past the last. An object's parts count as its children.
  static std::optional<Step> child(const Value& of, std::size_t index, std::size_t depth) {
    if (of.kind() == Kind::dict) {
      if (index < of.size()) return Step{of.value(index), key_label(of.key(index)), depth};
      index -= of.size();
    } else if (of.kind() != Kind::object) {
      if (index < of.size()) return Step{of.element(index), std::to_string(index), depth};
      index -= of.size();
    }
    const std::pair<const char*, Value> parts[] = {
        {"args", of.args()},   {"kwargs", of.kwargs()},
        {"state", of.state()}, {"items", of.items()},
        {"pairs", of.pairs()}, {"attributes", of.kind() == Kind::object ? Value() : of.attributes()}};
    for (const auto& [label, part] : parts) {
      if (part.is_none() || (part.kind() == Kind::tuple && part.size() == 0)) continue;
      if (index-- == 0) return Step{part, fmt::format("({})", label), depth};
    }
    return std::nullopt;
  }

  static bool is_container(const Value& value) {
    return value.size() != 0 || (value.kind() == Kind::object && !value.is_global()) ||
           !value.attributes().is_none();
  }

  Value root;
  Limits limits;
  std::vector<Frame> frames;
  std::unordered_set<std::uint64_t> entered;
  std::size_t steps = 0;
  bool cut = false;
};

ValueWalk::ValueWalk(Value root, Limits limits) : state_(std::make_unique<State>()) {
  state_->root = std::move(root);
  state_->limits = limits;
}

ValueWalk::~ValueWalk() = default;
ValueWalk::ValueWalk(ValueWalk&&) noexcept = default;
ValueWalk& ValueWalk::operator=(ValueWalk&&) noexcept = default;

bool ValueWalk::cut() const noexcept {
  return state_->cut;
}

std::optional<ValueWalk::Step> ValueWalk::next() {
  State& state = *state_;
  std::optional<Step> step;
  if (state.steps == 0) step = Step{state.root, {}, 0};
  while (!step && !state.frames.empty()) {
    State::Frame& top = state.frames.back();
    step = State::child(top.value, top.next++, top.depth + 1);
    if (!step) state.frames.pop_back();
  }
  if (!step) return std::nullopt;
  if (state.steps++ >= state.limits.steps) {
    state.cut = true;
    state.frames.clear();
    return std::nullopt;
  }
  if (State::is_container(step->value)) {
    step->repeated = !state.entered.insert(ValueTree::ref(step->value).bits()).second;
    if (!step->repeated) {
      if (step->depth < state.limits.depth)
        state.frames.push_back({step->value, 0, step->depth});
      else
        state.cut = true;
    }
  }
  return step;
}

}  // namespace ballast
