// SPDX-License-Identifier: Apache-2.0
// Python's own containers, numbers and ways to make objects.

#include "formats/torch/objects.h"
#include "formats/torch/pickle_text.h"

namespace ballast::torch {
namespace {

TypeId plain_or(Objects& objects, const Call& call, std::string_view builtin) {
  const std::string_view name = objects.tree().type_name(call.callee->type);
  return name == builtin ? 0 : call.callee->type;
}

// Pairs from a dict, or from a list of pairs as Python 2 wrote OrderedDicts.
void add_pairs(Objects& objects, Node* dict, Ref from) {
  if (const Node* other = Objects::as_kind(from, NodeKind::dict)) {
    return objects.set_items(Ref(dict), {other->refs, std::size_t{other->size} * 2});
  }
  for (const Ref item : objects.need_sequence(from, "the items of a dict")) {
    const auto pair = objects.need_sequence(item, "an item of a dict");
    if (pair.size() != 2) objects.refuse(Errc::type_mismatch, "an item of a dict with {} parts", pair.size());
    objects.set_items(Ref(dict), pair);
  }
}

Ref make_dict(Objects& objects, const Call& call, Role role) {
  Node* dict = objects.tree().make(NodeKind::dict, plain_or(objects, call, "builtins.dict"));
  const std::size_t first = role == Role::default_dict ? 1 : 0;  // behind the factory, which stays a name
  if (Objects::as_kind(Objects::argument(call, first), NodeKind::object) != nullptr)
    return objects.inert(call);
  if (call.args.size() > first) add_pairs(objects, dict, call.args[first]);
  return Ref(dict);
}

Ref make_sequence(Objects& objects, const Call& call, Role role) {
  std::span<const Ref> elements;
  if (!call.args.empty()) {
    if (const Node* set = Objects::as_kind(call.args[0], NodeKind::set))
      elements = {set->refs, set->size};
    else if (Objects::as_kind(call.args[0], NodeKind::object) != nullptr)
      return objects.inert(call);
    else
      elements = objects.need_sequence(call.args[0], "the elements of a container");
  }
  ValueTree& tree = objects.tree();
  switch (role) {
    case Role::tuple:
      return tree.sequence(NodeKind::tuple, elements);
    case Role::list:
      return tree.sequence(NodeKind::list, elements);
    case Role::deque:
      return tree.sequence(NodeKind::list, elements, call.callee->type);
    default: {
      Node* set = tree.make(NodeKind::set, role == Role::frozenset ? tree.type_id("frozenset") : 0);
      objects.add(Ref(set), elements);
      return Ref(set);
    }
  }
}

// bytes(), bytes(text, 'latin1'), bytearray(bytes), _codecs.encode(text, 'latin1').
Ref make_bytes(Objects& objects, const Call& call, Role role) {
  ValueTree& tree = objects.tree();
  const TypeId type = role == Role::bytearray ? tree.type_id("bytearray") : 0;
  if (call.args.empty()) return tree.bytes({}, type);
  if (Objects::as_kind(call.args[0], NodeKind::object) != nullptr) return objects.inert(call);
  if (const Node* bytes = Objects::as_kind(call.args[0], NodeKind::bytes))
    return tree.bytes({bytes->text, bytes->size}, type);
  if (const Node* list = Objects::as_kind(call.args[0], NodeKind::list)) {
    std::string bytes;
    for (std::uint32_t i = 0; i < list->size; ++i) {
      const std::int64_t byte = objects.need_int(list->refs[i], "a byte");
      if (byte < 0 || byte > 255) objects.refuse(Errc::bad_pickle, "a byte of {}", byte);
      bytes += static_cast<char>(static_cast<unsigned char>(byte));
    }
    return tree.bytes(tree.store(bytes), type);
  }
  const std::string_view text = objects.need_text(call.args[0], "the text of bytes");
  const auto codec = Objects::as_text(Objects::argument(call, 1)).value_or("latin1");
  if (codec == "utf-8" || codec == "utf8") return tree.bytes(text, type);
  if (codec != "latin1" && codec != "latin-1" && codec != "iso-8859-1") return objects.inert(call);
  if (is_ascii(text)) return tree.bytes(text, type);
  const auto encoded = encode_latin1(text);
  if (!encoded) objects.refuse(Errc::bad_pickle, "text that is to become Latin-1 bytes has other characters");
  return tree.bytes(tree.store(*encoded), type);
}

Ref make_complex(Objects& objects, const Call& call) {
  double parts[2] = {0, 0};
  for (std::size_t i = 0; i < 2 && i < call.args.size(); ++i) {
    const Value part = ValueTree::value(objects.shared_tree(), call.args[i]);
    if (part.kind() != Kind::floating && part.kind() != Kind::integer) return objects.inert(call);
    parts[i] = part.as_float();
  }
  return objects.tree().complex(parts[0], parts[1]);
}

// getattr(Color, 'RED'): an enum's member. Anything else it could reach is refused.
Ref make_member(Objects& objects, const Call& call) {
  objects.need_arguments(call, 2);
  const std::string_view name = objects.need_text(call.args[1], "an attribute's name");
  const Node* target = call.args[0].is_node() ? call.args[0].node() : nullptr;
  if (target == nullptr || (target->kind != NodeKind::global && target->kind != NodeKind::object)) {
    objects.refuse(Errc::type_mismatch, "an attribute of {}", objects.describe(call.args[0]));
  }
  const bool hidden = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  if (hidden || name.find('.') != std::string_view::npos) {
    Rebuild::forbid(objects, fmt::format("{}.{}", objects.tree().type_name(target->type), name));
  }
  Node* state = objects.tree().make(NodeKind::dict);
  const Ref pair[] = {objects.tree().string("name"), call.args[1]};
  objects.tree().append_pairs(state, pair);
  const Ref member = objects.tree().object(target->type, Ref::none(), Ref(state));
  member.node()->role = static_cast<std::uint8_t>(Role::getattr);
  return member;
}

Ref construct(Objects& objects, Ref callee, Ref args, Ref kwargs) {
  const Node* member = Objects::as_kind(callee, NodeKind::object);
  const bool is_member = member != nullptr && static_cast<Role>(member->role) == Role::getattr;
  if (Objects::as_kind(callee, NodeKind::global) == nullptr && !is_member)
    objects.refuse(Errc::type_mismatch, "an object of {}", objects.describe(callee));
  return objects.call(callee, args, kwargs, true);
}

// (class, base, state): an object whose base part is `state`.
Ref reconstruct(Objects& objects, const Call& call) {
  objects.need_arguments(call, 3);
  ValueTree& tree = objects.tree();
  const Ref made = construct(objects, call.args[0], tree.sequence(NodeKind::tuple, {}), Ref::none());
  if (!made.is_node() || made.node()->kind != NodeKind::object || call.args[2].is_none()) return made;
  ObjectRecord& object = *made.node()->object;
  const Node* base = call.args[2].is_node() ? call.args[2].node() : nullptr;
  if (base != nullptr && base->kind == NodeKind::dict)
    object.pairs = call.args[2];
  else if (base != nullptr && base->kind == NodeKind::list)
    object.items = call.args[2];
  else if (base != nullptr && base->kind == NodeKind::tuple)
    object.args = call.args[2];
  else
    object.args = tree.sequence(NodeKind::tuple, {&call.args[2], 1});
  return made;
}

}  // namespace

Ref Rebuild::python(Objects& objects, const Call& call, Role role) {
  switch (role) {
    case Role::ordered_dict:
    case Role::default_dict:
    case Role::counter:
    case Role::dict:
      return make_dict(objects, call, role);
    case Role::deque:
    case Role::set:
    case Role::frozenset:
    case Role::list:
    case Role::tuple:
      return make_sequence(objects, call, role);
    case Role::bytes:
    case Role::bytearray:
    case Role::encode:
      return make_bytes(objects, call, role);
    case Role::complex:
      return make_complex(objects, call);
    case Role::integer:
    case Role::floating:
    case Role::string: {
      const NodeKind own = role == Role::floating ? NodeKind::floating : NodeKind::string;
      const bool same =
          call.args.size() == 1 && (role == Role::integer ? Objects::as_int(call.args[0]).has_value()
                                                          : Objects::as_kind(call.args[0], own) != nullptr);
      return same ? call.args[0] : objects.inert(call);
    }
    case Role::getattr:
      return make_member(objects, call);
    case Role::reconstructor:
      return reconstruct(objects, call);
    case Role::new_object:
      objects.need_arguments(call, 1);
      return construct(objects, call.args[0], objects.tree().sequence(NodeKind::tuple, call.args.subspan(1)),
                       Ref::none());
    default:  // __newobj_ex__
      objects.need_arguments(call, 3);
      if (Objects::as_kind(call.args[1], NodeKind::tuple) == nullptr ||
          Objects::as_kind(call.args[2], NodeKind::dict) == nullptr) {
        objects.refuse(Errc::type_mismatch, "{} and {} for the arguments of an object",
                       objects.describe(call.args[1]), objects.describe(call.args[2]));
      }
      return construct(objects, call.args[0], call.args[1], call.args[2]);
  }
}

}  // namespace ballast::torch
