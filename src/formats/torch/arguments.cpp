// SPDX-License-Identifier: Apache-2.0
// What calls may ask of their arguments: a number, text, bytes, a sequence; or a refusal that says what it
// is.
#include "ballast/display.h"
#include "formats/torch/objects.h"

namespace ballast::torch {

std::optional<std::int64_t> Objects::as_int(Ref value) noexcept {
  if (value.is_small()) return value.small();
  if (const Node* node = as_kind(value, NodeKind::integer)) return node->integer;
  return std::nullopt;
}

std::int64_t Objects::need_int(Ref value, const char* what) const {
  if (const auto number = as_int(value)) return *number;
  if (as_kind(value, NodeKind::big_integer) != nullptr)
    refuse(Errc::size_overflow, "{} is an integer of more than 64 bits", what);
  refuse(Errc::type_mismatch, "{} is {}, not an int", what, describe(value));
}

std::optional<std::string_view> Objects::as_text(Ref value) noexcept {
  const Node* node = as_kind(value, NodeKind::string);
  if (node == nullptr) return std::nullopt;
  return std::string_view(node->text, node->size);
}

std::string_view Objects::need_text(Ref value, const char* what) const {
  if (const auto text = as_text(value)) return *text;
  refuse(Errc::type_mismatch, "{} is {}, not a str", what, describe(value));
}

std::string_view Objects::need_bytes(Ref value, const char* what) const {
  if (const Node* node = as_kind(value, NodeKind::bytes)) return {node->text, node->size};
  return need_text(value, what);
}

std::span<const Ref> Objects::need_sequence(Ref value, const char* what) const {
  const Node* node = as_kind(value, NodeKind::tuple);
  if (node == nullptr) node = as_kind(value, NodeKind::list);
  if (node == nullptr) refuse(Errc::type_mismatch, "{} is {}, not a tuple", what, describe(value));
  return {node->refs, node->size};
}

Node* Objects::as_kind(Ref value, NodeKind kind) noexcept {
  return value.is_node() && value.node()->kind == kind ? value.node() : nullptr;
}

std::string Objects::describe(Ref value) const {
  const Value seen = ValueTree::value(tree_, value);
  if (seen.is_global()) return "class " + display(seen.type());
  return fmt::format("a {}{}", display(seen.type()), seen.kind() == Kind::object ? " object" : "");
}

void Objects::need_arguments(const Call& call, std::size_t count) const {
  if (call.args.size() >= count) return;
  refuse(Errc::type_mismatch, "{} with {} arguments, it takes {}",
         display(tree_->type_name(call.callee->type)), call.args.size(), count);
}

}  // namespace ballast::torch
