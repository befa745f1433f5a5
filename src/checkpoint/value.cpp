// SPDX-License-Identifier: Apache-2.0
#include "ballast/value.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ballast/error.h"
#include "base/checked.h"
#include "checkpoint/object_classes.h"
#include "checkpoint/value_tree.h"

namespace ballast {
namespace {

constexpr std::array<std::string_view, 13> kKindNames = {
    "none", "boolean", "integer", "floating", "complex", "string", "bytes",
    "list", "tuple",   "set",     "dict",     "tensor",  "object"};
constexpr std::array<std::string_view, 13> kPythonNames = {
    "NoneType", "bool",  "int", "float", "complex",      "str",   "bytes",
    "list",     "tuple", "set", "dict",  "torch.Tensor", "object"};
// Python itself refuses to print integers beyond about this size, for the same reason: the time grows with
// the square.
constexpr std::size_t kLargestPrintedInteger = 8192;

Kind kind_of(Ref ref) noexcept {
  if (ref.is_none()) return Kind::none;
  if (ref.is_bool()) return Kind::boolean;
  if (ref.is_small()) return Kind::integer;
  switch (const NodeKind kind = ref.node()->kind) {
    case NodeKind::big_integer:
      return Kind::integer;
    case NodeKind::global:
    case NodeKind::storage:
    case NodeKind::link:
      return Kind::object;
    default:
      return static_cast<Kind>(kind);
  }
}

[[noreturn]] void wrong_kind(const Value& value, std::string_view wanted) {
  fail(Errc::type_mismatch, "value", "is {} ({}), not {}", name(value.kind()), display(value.type()), wanted);
}

// Little-endian two's complement to decimal: repeated division of 32-bit words by 10^9.
std::string decimal_of(std::string_view bytes) {
  if (bytes.size() > kLargestPrintedInteger) {
    fail(Errc::size_overflow, "value", "an integer of {} bytes is too large to print", bytes.size());
  }
  const bool negative = (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0;
  std::vector<std::uint32_t> words((bytes.size() + 3) / 4, 0);
  std::uint32_t carry = negative ? 1 : 0;
  for (std::size_t i = 0; i < words.size() * 4; ++i) {
    std::uint32_t byte = i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : (negative ? 0xFFU : 0U);
    if (negative) {
      byte = (byte ^ 0xFFU) + carry;
      carry = byte >> 8U;
      byte &= 0xFFU;
    }
    words[i / 4] |= byte << (i % 4 * 8);
  }
  std::vector<std::uint32_t> digits;  // groups of nine, lowest first
  while (!words.empty()) {
    std::uint64_t rest = 0;
    for (std::size_t i = words.size(); i-- > 0;) {
      const std::uint64_t part = rest << 32U | words[i];
      words[i] = static_cast<std::uint32_t>(part / 1'000'000'000);
      rest = part % 1'000'000'000;
    }
    digits.push_back(static_cast<std::uint32_t>(rest));
    while (!words.empty() && words.back() == 0) words.pop_back();
  }
  std::string text = negative ? "-" : "";
  text += std::to_string(digits.back());
  for (std::size_t i = digits.size() - 1; i-- > 0;) text += fmt::format("{:09}", digits[i]);
  return text;
}

const ValueNode* container(Ref ref, std::initializer_list<NodeKind> kinds) noexcept {
  if (!ref.is_node()) return nullptr;
  return std::find(kinds.begin(), kinds.end(), ref.node()->kind) == kinds.end() ? nullptr : ref.node();
}

}  // namespace

std::string_view name(Kind kind) noexcept {
  return kKindNames[static_cast<std::size_t>(kind)];
}

Kind Value::kind() const noexcept {
  return kind_of(Ref(ref_));
}

std::string_view Value::type() const noexcept {
  const Ref ref(ref_);
  if (ref.is_node() && ref.node()->type != 0) return tree_->type_name(ref.node()->type);
  return kPythonNames[static_cast<std::size_t>(kind())];
}

bool Value::same_object(const Value& other) const noexcept {
  return ref_ == other.ref_;
}

bool Value::as_bool() const {
  const Ref ref(ref_);
  if (ref.is_bool()) return ref.is_true();
  if (const ValueNode* node = container(ref, {NodeKind::boolean})) return node->flag;
  wrong_kind(*this, "a boolean");
}

bool Value::fits_int() const noexcept {
  const Ref ref(ref_);
  return ref.is_small() || ref.is_bool() || container(ref, {NodeKind::integer, NodeKind::boolean}) != nullptr;
}

std::int64_t Value::as_int() const {
  const Ref ref(ref_);
  if (ref.is_small()) return ref.small();
  if (const ValueNode* node = container(ref, {NodeKind::integer})) return node->integer;
  if (kind() == Kind::boolean) return as_bool() ? 1 : 0;
  if (kind() == Kind::integer) fail(Errc::size_overflow, "value", "an integer of more than 64 bits");
  wrong_kind(*this, "an integer");
}

double Value::as_float() const {
  if (const ValueNode* node = container(Ref(ref_), {NodeKind::floating})) return node->floating;
  if (fits_int()) return static_cast<double>(as_int());
  if (kind() == Kind::integer) {
    const std::string digits = as_decimal();
    double value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc{}) return value;
    fail(Errc::size_overflow, "value", "an integer beyond the range of double");
  }
  wrong_kind(*this, "a number");
}

Complex Value::as_complex() const {
  if (const ValueNode* node = container(Ref(ref_), {NodeKind::complex}))
    return {node->complex[0], node->complex[1]};
  return {as_float(), 0.0};
}

std::string_view Value::as_string() const {
  if (const ValueNode* node = container(Ref(ref_), {NodeKind::string})) return {node->text, node->size};
  wrong_kind(*this, "a string");
}

std::span<const std::byte> Value::as_bytes() const {
  if (const ValueNode* node = container(Ref(ref_), {NodeKind::bytes}))
    return std::as_bytes(std::span(node->text, node->size));
  wrong_kind(*this, "bytes");
}

std::string Value::as_decimal() const {
  if (const ValueNode* node = container(Ref(ref_), {NodeKind::big_integer})) {
    const std::string_view text(node->text, node->size);
    return node->flag ? std::string(text) : decimal_of(text);
  }
  return std::to_string(as_int());
}

TensorValue Value::tensor_value() const {
  const ValueNode* node = container(Ref(ref_), {NodeKind::tensor});
  if (node == nullptr) wrong_kind(*this, "a tensor");
  const TensorRecord& record = *node->tensor;
  TensorValue value{.tensor = tree_->tensor_of(record),
                    .requires_grad = record.requires_grad,
                    .is_parameter = record.is_parameter};
  if (record.location != 0) value.location = tree_->type_name(record.location);
  if (record.details != 0) {
    value.quantization = tree_->details[record.details - 1].quantization;
    value.sparse = tree_->details[record.details - 1].sparse;
  }
  return value;
}

std::size_t Value::size() const noexcept {
  const ValueNode* node =
      container(Ref(ref_), {NodeKind::list, NodeKind::tuple, NodeKind::set, NodeKind::dict});
  return node == nullptr ? 0 : node->size;
}

Value Value::element(std::size_t index) const {
  const ValueNode* node = container(Ref(ref_), {NodeKind::list, NodeKind::tuple, NodeKind::set});
  if (node == nullptr) wrong_kind(*this, "a list, tuple or set");
  if (index >= node->size) fail(Errc::offset_out_of_range, "value", "element {} of {}", index, node->size);
  return ValueTree::value(tree_, node->refs[index]);
}

Value Value::key(std::size_t index) const {
  const ValueNode* node = container(Ref(ref_), {NodeKind::dict});
  if (node == nullptr) wrong_kind(*this, "a dict");
  if (index >= node->size) fail(Errc::offset_out_of_range, "value", "pair {} of {}", index, node->size);
  return ValueTree::value(tree_, node->refs[index * 2]);
}

Value Value::value(std::size_t index) const {
  static_cast<void>(key(index));  // the same refusals
  return ValueTree::value(tree_, Ref(ref_).node()->refs[index * 2 + 1]);
}

bool Value::is_global() const noexcept {
  return container(Ref(ref_), {NodeKind::global}) != nullptr;
}

namespace {

Value part(const Value& value, Ref ObjectRecord::*member) {
  const ValueNode* node = container(ValueTree::ref(value), {NodeKind::object});
  return node == nullptr ? Value() : ValueTree::value(ValueTree::tree(value), node->object->*member);
}

}  // namespace

Value Value::args() const {
  return part(*this, &ObjectRecord::args);
}

Value Value::kwargs() const {
  return part(*this, &ObjectRecord::kwargs);
}

Value Value::state() const {
  return part(*this, &ObjectRecord::state);
}

Value Value::items() const {
  return part(*this, &ObjectRecord::items);
}

Value Value::pairs() const {
  return part(*this, &ObjectRecord::pairs);
}

Value Value::attributes() const {
  const Ref ref(ref_);
  if (!ref.is_node()) return {};
  if (ref.node()->has_attributes) return ValueTree::value(tree_, tree_->attributes_of(ref.node()));
  // State is a dict, or (dict or None, dict of slots).
  Value held = state();
  if (held.kind() == Kind::dict) return held;
  if (held.kind() == Kind::tuple && held.size() == 2 && held.element(1).kind() == Kind::dict) {
    return held.element(0).kind() == Kind::dict && held.element(0).size() != 0 ? held.element(0)
                                                                               : held.element(1);
  }
  return {};
}

std::optional<Value> Value::find(std::string_view key) const {
  const auto in_dict = [](const Value& dict, std::string_view wanted) -> std::optional<Value> {
    const ValueNode* node = container(Ref(dict.ref_), {NodeKind::dict});
    if (node == nullptr) return std::nullopt;
    const Ref* found = dict.tree_->find(node, wanted);
    if (found == nullptr) return std::nullopt;
    return ValueTree::value(dict.tree_, *found);
  };
  if (auto found = in_dict(*this, key)) return found;
  if (auto found = in_dict(pairs(), key)) return found;
  const Value own = attributes();
  if (auto found = in_dict(own, key)) return found;
  if (kind() == Kind::object && tree_->classes != nullptr) {
    for (const std::string_view table : tree_->classes->attribute_tables()) {
      const auto entries = in_dict(own, table);
      if (!entries) continue;
      if (auto found = in_dict(*entries, key)) return found;
    }
  }
  const Value held = state();
  if (held.kind() == Kind::tuple && held.size() == 2) return in_dict(held.element(1), key);
  return std::nullopt;
}

}  // namespace ballast
