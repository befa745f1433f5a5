// SPDX-License-Identifier: Apache-2.0
// What fills objects that are there already: BUILD, APPEND, SETITEM, ADDITEMS. Containers and states are
// copied when Python copies them, so that what a pickle does to the original later changes nothing.
#include <array>
#include <vector>

#include "ballast/error.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kLongestKey = 100'000;  // parts of a tuple of tuples

// Classes of PyTorch's and Python's that have no place for attributes, or their own ideas about state.
bool has_attributes_of_its_own(std::string_view type) {
  return type == "collections.OrderedDict" || type == "collections.Counter";
}

}  // namespace

ValueNode* Objects::copy_dict(const ValueNode* dict, TypeId type) {
  ValueNode* copy = tree().make(NodeKind::dict, type);
  tree().append_pairs(copy, {dict->refs, std::size_t{dict->size} * 2});
  return copy;
}

void Objects::append(Ref target, std::span<const Ref> elements) {
  ValueNode* node = target.is_node() ? target.node() : nullptr;
  if (node != nullptr && node->kind == NodeKind::object && role_of(target) == Role::unknown) {
    Ref& items = node->object->items;
    if (items.is_none()) items = Ref(tree().make(NodeKind::list));
    node = as_kind(items, NodeKind::list);
  }
  if (node == nullptr || node->kind != NodeKind::list)
    refuse(Errc::type_mismatch, "APPEND to {}", describe(target));
  if (const auto length = bounded_.find(node); length != bounded_.end()) {
    if (node->size + elements.size() > static_cast<std::uint64_t>(length->second))
      refuse(Errc::unsupported, "a deque that forgets all but {} elements", length->second);
  }
  tree().append(node, elements);
}

void Objects::add(Ref target, std::span<const Ref> elements) {
  ValueNode* node = as_kind(target, NodeKind::set);
  if (node == nullptr || node->type != 0) refuse(Errc::type_mismatch, "ADDITEMS to {}", describe(target));
  for (const Ref element : elements) need_hashable(element);
  tree().append(node, elements);
}

void Objects::set_items(Ref target, std::span<const Ref> pairs) {
  ValueNode* node = target.is_node() ? target.node() : nullptr;
  if (node != nullptr && node->kind == NodeKind::object && role_of(target) == Role::unknown) {
    Ref& held = node->object->pairs;
    if (held.is_none()) held = Ref(tree().make(NodeKind::dict));
    node = as_dict(held);
  }
  if (node == nullptr || node->kind != NodeKind::dict || role_of(target) == Role::namespace_)
    refuse(Errc::type_mismatch, "SETITEM on {}", describe(target));
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const ValueNode* key = pairs[i].is_node() ? pairs[i].node() : nullptr;
    if (key != nullptr && (key->kind != NodeKind::string || key->type != 0)) need_hashable(pairs[i]);
  }
  tree().append_pairs(node, pairs);
}

// Lists, dicts, sets, bytearrays and arrays cannot be keys, nor tuples that hold one.
void Objects::need_hashable(Ref key) {
  struct Level {
    const ValueNode* tuple;
    std::uint32_t next;
  };

  const auto is_unhashable = [&](const ValueNode* node) {
    switch (node->kind) {
      case NodeKind::list:
      case NodeKind::dict:
        return true;
      case NodeKind::set:
        return node->type == 0;
      case NodeKind::bytes:
        return node->type != 0 && tree().type_name(node->type) == "bytearray";
      case NodeKind::tensor:
        return tree().type_name(node->type).starts_with("numpy.");
      case NodeKind::object: {  // equal by value in Python: here they would be different keys
        const auto role = static_cast<Role>(node->role);
        return role == Role::slice || role == Role::range || role == Role::timedelta || role == Role::uuid ||
               role == Role::timezone || role == Role::numpy_dtype;
      }
      case NodeKind::string: {  // likewise: a moment has a name in every time zone, a dtype several
        const std::string_view type = node->type == 0 ? std::string_view() : tree().type_name(node->type);
        return type == "datetime.datetime" || type == "datetime.time" || type == "numpy.dtype";
      }
      default:
        return false;
    }
  };
  std::vector<Level> levels;
  std::size_t seen = 0;
  for (Ref at = key;;) {
    const ValueNode* node = at.is_node() ? at.node() : nullptr;
    if (node != nullptr && is_unhashable(node)) refuse(Errc::type_mismatch, "{} as a key", describe(at));
    if (node != nullptr && node->kind == NodeKind::tuple) levels.push_back({node, 0});
    if (levels.size() > kMaxDepth) refuse(Errc::too_deep, "a key of more than {} levels", kMaxDepth);
    if (++seen > kLongestKey) refuse(Errc::expansion_limit, "a key of more than {} parts", kLongestKey);
    budget().step();
    while (!levels.empty() && levels.back().next == levels.back().tuple->size) levels.pop_back();
    if (levels.empty()) return;
    at = levels.back().tuple->refs[levels.back().next++];
  }
}

void Objects::build(Ref target, Ref state) {
  ValueNode* node = target.is_node() ? target.node() : nullptr;
  if (node == nullptr) refuse(Errc::type_mismatch, "BUILD on {}", describe(target));
  if (node->kind == NodeKind::object) return build_object(node, state);
  if (node->kind == NodeKind::tensor) return Rebuild::build_made_tensor(*this, node, state);
  const Role role = role_of(target);
  if (node->kind == NodeKind::dict && role == Role::namespace_)
    return Rebuild::build_plain(*this, node, state);
  if (node->kind == NodeKind::string && role == Role::numpy_dtype)
    return Rebuild::build_numpy(*this, node, state);
  const bool takes_attributes =
      node->kind == NodeKind::dict && has_attributes_of_its_own(tree().type_name(node->type));
  if (!takes_attributes) refuse(Errc::type_mismatch, "BUILD on {}", describe(target));
  add_attributes(node, state);
}

// An attribute of such a name, or one that can be called, may stand in for a method: then Python calls what
// is not to be seen here.
void Objects::check_attributes(const ValueNode* node, const ValueNode* attributes) {
  budget().step(attributes->size);
  for (std::uint32_t i = 0; i < attributes->size; ++i) {
    const auto name = as_text(attributes->refs[std::size_t{i} * 2]);
    const Ref value = attributes->refs[std::size_t{i} * 2 + 1];
    if (!name || is_pythons_own(*name) || as_kind(value, NodeKind::global) != nullptr)
      return ledger_.note_misfit(node->type);
  }
}

// Python adds them to those that are there.
void Objects::add_attributes(ValueNode* node, Ref state) {
  const ValueNode* more = as_dict(state);
  if (more == nullptr) refuse(Errc::type_mismatch, "{} for attributes", describe(state));
  check_attributes(node, more);
  const Ref held = tree().attributes_of(node);
  ValueNode* all = copy_dict(as_dict(held) != nullptr ? held.node() : more);
  if (!held.is_none()) tree().append_pairs(all, {more->refs, std::size_t{more->size} * 2});
  tree().set_attributes(node, Ref(all));
}

void Objects::build_object(ValueNode* node, Ref state) {
  switch (static_cast<Role>(node->role)) {
    case Role::tensor_class:
    case Role::parameter_class:
      return Rebuild::build_tensor(*this, node, state);
    case Role::numpy_reconstruct:
      return Rebuild::build_numpy(*this, node, state);
    case Role::omega_container:
    case Role::omega_node:
    case Role::uuid:
      return Rebuild::build_plain(*this, node, state);
    case Role::unknown:
      break;
    default:
      refuse(Errc::type_mismatch, "BUILD on {}", describe(Ref(node)));
  }
  Ref& held = node->object->state;
  const ValueNode* old = as_dict(held);
  const ValueNode* more = as_dict(state);
  if (held.is_none()) {
    held = more != nullptr ? Ref(copy_dict(more)) : state;
  } else if (old != nullptr && more != nullptr) {  // a second BUILD adds to the first
    ValueNode* merged = copy_dict(old);
    tree().append_pairs(merged, {more->refs, std::size_t{more->size} * 2});
    held = Ref(merged);
  } else {
    held = tree().sequence(NodeKind::tuple, std::array{held, state});
  }
}

void Objects::note_device(std::string_view device) {
  if (is_meta(device))
    ledger_.find(Severity::warning, Errc::unsupported,
                 "numbers on the device meta, of which PyTorch reads none", 0, {});
}

void Objects::expect_no_hooks(TypeId type, Ref hooks) {
  if (hooks.is_none()) return;
  const ValueNode* dict = as_dict(hooks);
  if (dict == nullptr || dict->size != 0) return ledger_.note_misfit(type);
  budget().take(sizeof(hooks_.front()));
  hooks_.emplace_back(dict, type);
}

void Objects::check_hooks() {
  for (const auto& [dict, type] : hooks_) {
    if (dict->size != 0) ledger_.note_misfit(type);
  }
  hooks_.clear();
}

void Objects::finish() {
  // NOLINTNEXTLINE(modernize-loop-convert): the list may grow meanwhile
  for (std::size_t i = 0; i < unfinished_.size(); ++i) unfinished_[i]();
  unfinished_.clear();
  tree().forget_indices();
}

}  // namespace ballast::torch
