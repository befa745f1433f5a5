// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/tree_frame.h"

#include "ballast/error.h"
#include "checkpoint/value_tree.h"

namespace ballast::torch {

std::uint64_t identity(const Value& value) {
  return ValueTree::ref(value).bits();
}

std::size_t Frame::child_count() const {
  return is_dict(form) ? value.size() * 2 : value.size();
}

Value Frame::child(std::size_t index) const {
  if (!is_dict(form)) return value.element(index);
  return index % 2 == 0 ? value.key(index / 2) : value.value(index / 2);
}

std::optional<Value> Frame::attributes() const {
  if (form != Form::ordered_dict) return std::nullopt;
  Value attributes = value.attributes();
  if (attributes.kind() != Kind::dict || attributes.size() == 0) return std::nullopt;
  return attributes;
}

std::string Frame::label() const {
  const std::size_t index = next - 1;
  if (!is_dict(form)) return std::to_string(index);
  if (index >= child_count()) return "(attributes)";
  const Value key = value.key(index / 2);
  return key.kind() == Kind::string ? display(key.as_string()) : key.summary();
}

}  // namespace ballast::torch
