// SPDX-License-Identifier: Apache-2.0
// Values made by a program: each is a small tree of its own whose parts are links, so that sharing stays
// sharing.
#include <algorithm>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/checked.h"
#include "checkpoint/value_tree.h"

namespace ballast {
namespace {

template <class Build>
Value build(Build&& fill) {
  auto tree = std::make_shared<ValueTree>();
  const Ref root = fill(*tree);
  return ValueTree::value(tree, root);
}

Value sequence(NodeKind kind, const std::vector<Value>& elements, std::string_view type = {}) {
  return build([&](ValueTree& tree) {
    std::vector<Ref> refs;
    refs.reserve(elements.size());
    for (const Value& element : elements) refs.push_back(tree.link(element));
    return tree.sequence(kind, refs, type.empty() ? 0 : tree.type_id(type));
  });
}

std::vector<std::pair<Value, Value>> pairs_of(const Value& dict) {
  std::vector<std::pair<Value, Value>> pairs;
  pairs.reserve(dict.size());
  for (std::size_t i = 0; i < dict.size(); ++i) pairs.emplace_back(dict.key(i), dict.value(i));
  return pairs;
}

std::vector<Value> elements_of(const Value& list) {
  std::vector<Value> elements;
  elements.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) elements.push_back(list.element(i));
  return elements;
}

// Text keys are copied: find() compares them and does not follow links.
Ref key_ref(ValueTree& tree, const Value& key) {
  const bool text = key.kind() == Kind::string && key.type() == "str";
  return text ? tree.string(tree.store(key.as_string())) : tree.link(key);
}

// A node of the new tree that is a copy of `value`, its parts linked.
Ref copy_node(ValueTree& tree, const Value& value) {
  switch (value.kind()) {
    case Kind::none:
      return Ref::none();
    case Kind::boolean: {
      ValueNode* node = tree.make(NodeKind::boolean);
      node->flag = value.as_bool();
      return Ref(node);
    }
    case Kind::integer: {
      if (!value.fits_int()) return tree.decimal_integer(tree.store(value.as_decimal()));
      ValueNode* node = tree.make(NodeKind::integer);
      node->integer = value.as_int();
      return Ref(node);
    }
    case Kind::floating:
      return tree.floating(value.as_float());
    case Kind::complex:
      return tree.complex(value.as_complex().real(), value.as_complex().imag());
    case Kind::string:
      return tree.string(tree.store(value.as_string()));
    case Kind::bytes: {
      const auto bytes = value.as_bytes();
      return tree.bytes(tree.store({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    }
    case Kind::list:
    case Kind::tuple:
    case Kind::set: {
      std::vector<Ref> refs;
      for (const Value& element : elements_of(value)) refs.push_back(tree.link(element));
      return tree.sequence(static_cast<NodeKind>(value.kind()), refs);
    }
    case Kind::dict: {
      ValueNode* node = tree.make(NodeKind::dict);
      for (const auto& [key, held] : pairs_of(value)) {
        const Ref pair[] = {key_ref(tree, key), tree.link(held)};
        tree.append_pairs(node, pair);
      }
      return Ref(node);
    }
    case Kind::tensor:
      return tree.tensor(value.tensor_value());
    case Kind::object: {
      if (value.is_global()) return Ref(tree.make(NodeKind::global));
      const Ref object = tree.object(0, tree.link(value.args()), tree.link(value.state()));
      object.node()->object->kwargs = tree.link(value.kwargs());
      object.node()->object->items = tree.link(value.items());
      object.node()->object->pairs = tree.link(value.pairs());
      return object;
    }
  }
  return Ref::none();
}

}  // namespace

Value::Value(bool value) noexcept : ref_(Ref::boolean(value).bits()) {}

Value Value::from_integer(std::int64_t value, bool is_unsigned) {
  if (is_unsigned) return integer(std::to_string(static_cast<std::uint64_t>(value)));
  if (Ref::is_small(value)) return {nullptr, Ref::small(value).bits()};
  return build([&](ValueTree& tree) { return tree.integer(value); });
}

Value::Value(double value) : Value(build([&](ValueTree& tree) { return tree.floating(value); })) {}

Value::Value(Complex value)
    : Value(build([&](ValueTree& tree) { return tree.complex(value.real(), value.imag()); })) {}

Value::Value(std::string_view text)
    : Value(build([&](ValueTree& tree) { return tree.string(tree.store(text)); })) {}

Value::Value(const Tensor& tensor) : Value(TensorValue{.tensor = tensor}) {}

Value::Value(const TensorValue& tensor)
    : Value(build([&](ValueTree& tree) { return tree.tensor(tensor); })) {}

Value Value::integer(std::string_view decimal) {
  const std::string_view digits = decimal.substr(decimal.starts_with('-') ? 1 : 0);
  if (digits.empty() || !all_digits(digits)) fail(Errc::invalid_argument, quoted(decimal), "is no integer");
  return build([&](ValueTree& tree) { return tree.decimal_integer(tree.store(decimal)); });
}

Value Value::bytes(std::span<const std::byte> bytes) {
  return build([&](ValueTree& tree) {
    return tree.bytes(tree.store({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  });
}

Value Value::list(const std::vector<Value>& elements) {
  return sequence(NodeKind::list, elements);
}

Value Value::tuple(const std::vector<Value>& elements) {
  return sequence(NodeKind::tuple, elements);
}

Value Value::set(const std::vector<Value>& elements) {
  return sequence(NodeKind::set, elements);
}

Value Value::dict(const std::vector<std::pair<Value, Value>>& pairs) {
  return build([&](ValueTree& tree) {
    ValueNode* node = tree.make(NodeKind::dict);
    std::vector<Ref> refs;
    refs.reserve(pairs.size() * 2);
    for (const auto& [key, value] : pairs) {
      refs.push_back(key_ref(tree, key));
      refs.push_back(tree.link(value));
    }
    tree.append_pairs(node, refs);
    return Ref(node);
  });
}

Value Value::object(std::string_view class_name, const Value& args, const Value& state) {
  return build([&](ValueTree& tree) {
    return tree.object(tree.type_id(class_name), tree.link(args), tree.link(state));
  });
}

Value Value::as_type(std::string_view type) const {
  return build([&](ValueTree& tree) {
    const Ref copy = copy_node(tree, *this);
    if (!copy.is_node()) return copy;
    copy.node()->type = tree.type_id(type);
    if (const Value held = attributes(); kind() != Kind::object && !held.is_none())
      tree.set_attributes(copy.node(), tree.link(held));
    return copy;
  });
}

Value Value::with_attributes(const Value& dict) const {
  return build([&](ValueTree& tree) {
    const Ref copy = copy_node(tree, *this);
    if (!copy.is_node()) return copy;
    if (const Ref old(ref_); old.is_node() && old.node()->type != 0) copy.node()->type = tree.type_id(type());
    tree.set_attributes(copy.node(), tree.link(dict));
    return copy;
  });
}

}  // namespace ballast
