// SPDX-License-Identifier: Apache-2.0
// Python's own containers, numbers and ways to make objects.
#include <algorithm>

#include "base/utf8.h"
#include "formats/torch/objects.h"
#include "formats/torch/pickle_text.h"

namespace ballast::torch {
namespace {

TypeId plain_or(Objects& objects, const Call& call, std::string_view builtin) {
  const std::string_view name = objects.tree().type_name(call.callee->type);
  return name == builtin ? 0 : call.callee->type;
}

// list, tuple; anything else that can be iterated over is no pickler's work.
const ValueNode* as_sequence(Ref value) {
  const ValueNode* node = as_kind(value, NodeKind::tuple);
  return node != nullptr ? node : as_kind(value, NodeKind::list);
}

// Pairs from a dict, or from a list of pairs as Python 2 wrote OrderedDicts.
void add_pairs(Objects& objects, ValueNode* dict, Ref from) {
  if (const ValueNode* other = as_dict(from)) {
    return objects.set_items(Ref(dict), {other->refs, std::size_t{other->size} * 2});
  }
  for (const Ref item : objects.need_sequence(from, "the items of a dict")) {
    const auto pair = objects.need_sequence(item, "an item of a dict");
    if (pair.size() != 2) objects.refuse(Errc::type_mismatch, "an item of a dict with {} parts", pair.size());
    objects.set_items(Ref(dict), pair);
  }
}

// What a defaultdict makes of a missing key: one of Python's own empty things.
bool is_factory(Ref value) {
  if (value.is_none()) return true;
  if (as_kind(value, NodeKind::global) == nullptr) return false;
  switch (role_of(value)) {
    case Role::list:
    case Role::dict:
    case Role::set:
    case Role::tuple:
    case Role::integer:
    case Role::floating:
    case Role::string:
    case Role::boolean:
    case Role::ordered_dict:
      return true;
    default:
      return false;
  }
}

Ref make_dict(Objects& objects, const Call& call, Role role) {
  const std::size_t first = role == Role::default_dict ? 1 : 0;  // behind the factory, which stays a name
  const bool is_empty = call.args.size() <= first;
  const Ref content = Objects::argument(call, first);
  if (call.args.size() > first + 1 || (call.how == How::make && !call.args.empty()) ||
      (role == Role::default_dict && !is_factory(Objects::argument(call, 0))) ||
      (!is_empty && role == Role::counter && as_dict(content) == nullptr) ||
      as_kind(content, NodeKind::object) != nullptr ||
      (content.is_node() && content.node()->has_attributes))  // which may stand in for its methods
    return objects.misfit(call);
  ValueNode* dict = objects.tree().make(NodeKind::dict, plain_or(objects, call, "builtins.dict"));
  if (!is_empty) add_pairs(objects, dict, content);
  return Ref(dict);
}

Ref make_sequence(Objects& objects, const Call& call, Role role) {
  const bool is_mutable = role == Role::list || role == Role::set || role == Role::deque;
  if (call.how == How::make && is_mutable && !call.args.empty()) return objects.misfit(call);
  // deque(elements, the most it holds)
  const std::int64_t length = role == Role::deque ? as_int(Objects::argument(call, 1)).value_or(-1) : -1;
  const bool may_have_two = role == Role::deque && (length >= 0 || Objects::argument(call, 1).is_none());
  if (call.args.size() > (may_have_two ? 2U : 1U)) return objects.misfit(call);
  std::span<const Ref> elements;
  if (!call.args.empty()) {
    const bool from_set = role == Role::set || role == Role::frozenset;  // elsewhere the order would matter
    const ValueNode* from = as_sequence(call.args[0]);
    if (from == nullptr && from_set) from = as_kind(call.args[0], NodeKind::set);
    if (from == nullptr) return objects.misfit(call);
    elements = {from->refs, from->size};
  }
  ValueTree& tree = objects.tree();
  switch (role) {
    case Role::tuple:
      return tree.sequence(NodeKind::tuple, elements);
    case Role::list:
      return tree.sequence(NodeKind::list, elements);
    case Role::deque: {
      const Ref made = tree.sequence(NodeKind::list, elements, call.callee->type);
      if (length >= 0 && static_cast<std::uint64_t>(length) < elements.size()) return objects.misfit(call);
      if (length >= 0) objects.bound(made.node(), length);
      return made;
    }
    default: {
      ValueNode* set = tree.make(NodeKind::set);
      objects.add(Ref(set), elements);
      if (role == Role::frozenset) set->type = tree.type_id("frozenset");
      return Ref(set);
    }
  }
}

// bytes(), bytes(bytes), bytes([1, 2]), and the same of bytearray.
Ref copy_bytes(Objects& objects, const Call& call, TypeId type) {
  ValueTree& tree = objects.tree();
  if (const ValueNode* bytes = as_kind(call.args[0], NodeKind::bytes))
    return tree.bytes({bytes->text, bytes->size}, type);
  const ValueNode* list = as_kind(call.args[0], NodeKind::list);
  if (list == nullptr) return objects.misfit(call);
  objects.budget().take(list->size);
  std::string bytes;
  for (std::uint32_t i = 0; i < list->size; ++i) {
    const std::int64_t byte = objects.need_int(list->refs[i], "a byte");
    if (byte < 0 || byte > 255) objects.refuse(Errc::bad_pickle, "a byte of {}", byte);
    bytes += static_cast<char>(static_cast<unsigned char>(byte));
  }
  return tree.bytes(tree.store(bytes), type);
}

// bytes(text, 'latin1'), bytearray(text, 'latin1'), _codecs.encode(text, 'latin1').
Ref make_bytes(Objects& objects, const Call& call, Role role) {
  ValueTree& tree = objects.tree();
  const TypeId type = role == Role::bytearray ? tree.type_id("bytearray") : 0;
  const bool is_encode = role == Role::encode;
  if (call.how == How::make && role == Role::bytearray && !call.args.empty()) return objects.misfit(call);
  if (call.args.empty() && !is_encode) return tree.bytes({}, type);
  if (call.args.empty() || call.args.size() > 2) return objects.misfit(call);
  if (call.args.size() == 1 && !is_encode) return copy_bytes(objects, call, type);
  const auto text = as_text(call.args[0]);
  const auto codec = call.args.size() == 2 ? as_text(call.args[1]) : std::string_view("utf-8");
  if (!text || !codec) return objects.misfit(call);
  objects.budget().step(text->size());
  if (*codec == "utf-8" || *codec == "utf8") {
    if (!is_utf8(*text)) objects.refuse(Errc::bad_pickle, "text with surrogates that is to become UTF-8");
    return tree.bytes(*text, type);
  }
  if (*codec != "latin1" && *codec != "latin-1" && *codec != "iso-8859-1") return objects.misfit(call);
  if (is_ascii(*text)) return tree.bytes(*text, type);
  objects.budget().take(text->size());
  const auto encoded = encode_latin1(*text);
  objects.budget().give_back(text->size());
  if (!encoded) objects.refuse(Errc::bad_pickle, "text that is to become Latin-1 bytes has other characters");
  return tree.bytes(tree.store(*encoded), type);
}

Ref make_complex(Objects& objects, const Call& call) {
  if (call.args.size() > 2) return objects.misfit(call);
  double parts[2] = {0, 0};
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    const Value part = ValueTree::value(objects.shared_tree(), call.args[i]);
    const bool is_float = part.kind() == Kind::floating && part.type() == "float";
    if (!is_float && !(part.kind() == Kind::integer && part.fits_int())) return objects.misfit(call);
    parts[i] = part.as_float();
  }
  return objects.tree().complex(parts[0], parts[1]);
}

// int(3), float(0.5), str('a'), bool(True): of what they are already, or of nothing.
Ref make_number_or_text(Objects& objects, const Call& call, Role role) {
  if (call.args.empty()) {
    if (role == Role::string) return objects.tree().string({});
    if (role == Role::floating) return objects.tree().floating(0);
    return role == Role::boolean ? Ref::boolean(false) : Ref::small(0);
  }
  if (call.args.size() != 1) return objects.misfit(call);
  const Ref value = call.args[0];
  if (role == Role::boolean) return value.is_bool() ? value : objects.misfit(call);
  const bool is_small = value.is_small() && role == Role::integer;
  const NodeKind own = role == Role::floating ? NodeKind::floating
                       : role == Role::string ? NodeKind::string
                                              : NodeKind::integer;
  const ValueNode* node = as_kind(value, own);
  return is_small || (node != nullptr && node->type == 0) ? value : objects.misfit(call);
}

// range(stop), range(start, stop, step), slice(…): kept with their arguments.
Ref make_range(Objects& objects, const Call& call, Role role) {
  const auto fits_role = [&](Ref value) {
    return as_int(value).has_value() || (role == Role::slice && value.is_none());
  };
  if (call.args.empty() || call.args.size() > 3 ||
      !std::all_of(call.args.begin(), call.args.end(), fits_role))
    return objects.misfit(call);
  return objects.inert(call, role);
}

// getattr(Color, 'RED'): an enum's member. It may be anything, so it is never clean; what is hidden is
// refused.
Ref make_member(Objects& objects, const Call& call) {
  objects.need_arguments(call, 2, 2);
  const std::string_view name = objects.need_text(call.args[1], "an attribute's name");
  const ValueNode* target = call.args[0].is_node() ? call.args[0].node() : nullptr;
  if (target == nullptr || (target->kind != NodeKind::global && target->kind != NodeKind::object)) {
    objects.refuse(Errc::type_mismatch, "an attribute of {}", objects.describe(call.args[0]));
  }
  const std::string full = fmt::format("{}.{}", objects.tree().type_name(target->type), name);
  if (full.size() > 4096)
    objects.refuse(Errc::bad_pickle, "an attribute's name of {} characters", full.size());
  const bool hidden = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  const std::size_t dot = full.find('.');
  if (hidden || name.find('.') != std::string_view::npos ||
      is_forbidden(std::string_view(full).substr(0, dot), std::string_view(full).substr(dot + 1)))
    objects.ledger().forbid(full);
  ValueNode* state = objects.tree().make(NodeKind::dict);
  const Ref pair[] = {objects.tree().string("name"), call.args[1]};
  objects.tree().append_pairs(state, pair);
  const Ref member = objects.tree().object(target->type, Ref::none(), Ref(state));
  member.node()->role = static_cast<std::uint8_t>(Role::getattr);
  return member;
}

// A class, and none of the functions that would come back here.
Ref construct(Objects& objects, Ref callee, Ref args, Ref kwargs) {
  if (!Objects::is_class(callee))
    objects.refuse(Errc::type_mismatch, "an object of {}", objects.describe(callee));
  return objects.call(callee, args, kwargs, How::make);
}

// (class, base, state): an object whose base part is `state`.
Ref reconstruct(Objects& objects, const Call& call) {
  objects.need_arguments(call, 3, 3);
  ValueTree& tree = objects.tree();
  // object.__new__ refuses Python's own containers and numbers.
  const Role role = role_of(call.args[0]);
  const bool is_written_in_c = call.args[0].is_node() &&
                               objects.tree().type_name(call.args[0].node()->type) == "types.SimpleNamespace";
  const bool is_plain = (role == Role::namespace_ && !is_written_in_c) || role == Role::uuid ||
                        role == Role::object || role == Role::tensor_class || role == Role::parameter_class ||
                        role == Role::unknown;
  if (!is_plain) return objects.misfit(call);
  if (role_of(call.args[1]) != Role::object || !call.args[2].is_none()) objects.note_misfit(call);
  const Ref made = construct(objects, call.args[0], tree.sequence(NodeKind::tuple, {}), Ref::none());
  if (as_kind(made, NodeKind::object) == nullptr || call.args[2].is_none()) return made;
  ObjectRecord& object = *made.node()->object;
  const ValueNode* base = call.args[2].is_node() ? call.args[2].node() : nullptr;
  if (base != nullptr && base->kind == NodeKind::dict)
    object.pairs = Ref(objects.copy_dict(base));
  else if (base != nullptr && base->kind == NodeKind::list)
    object.items = tree.sequence(NodeKind::list, {base->refs, base->size});
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
    case Role::string:
    case Role::boolean:
      return make_number_or_text(objects, call, role);
    case Role::range:
    case Role::slice:
      return make_range(objects, call, role);
    case Role::object: {
      if (!call.args.empty()) return objects.misfit(call);
      return objects.inert(call, role);
    }
    case Role::getattr:
      return make_member(objects, call);
    case Role::reconstructor:
      return reconstruct(objects, call);
    case Role::new_object:
      objects.need_arguments(call, 1, SIZE_MAX);
      return construct(objects, call.args[0], objects.tree().sequence(NodeKind::tuple, call.args.subspan(1)),
                       Ref::none());
    default:  // __newobj_ex__
      objects.need_arguments(call, 3, 3);
      if (as_kind(call.args[1], NodeKind::tuple) == nullptr || as_dict(call.args[2]) == nullptr) {
        objects.refuse(Errc::type_mismatch, "{} and {} for the arguments of an object",
                       objects.describe(call.args[1]), objects.describe(call.args[2]));
      }
      objects.need_keywords(call.args[2]);
      return construct(objects, call.args[0], call.args[1], call.args[2]);
  }
}

}  // namespace ballast::torch
