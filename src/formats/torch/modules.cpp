// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/modules.h"

namespace ballast::torch {
namespace {

using Take = ObjectPart::Take;

constexpr std::array<std::string_view, 3> kTables = {"_parameters", "_buffers", "_modules"};
constexpr std::string_view kScript = "__torch__";

}  // namespace

bool Modules::parts_of(const ValueTree& tree, const ValueNode& object, ObjectParts& out) const {
  if (tree.type_name(object.type) == "torch.nested.NestedTensor") {
    out.left_out = "a nested tensor";
    return true;
  }
  const ValueNode* state = as_node(object.object->state, NodeKind::dict);
  if (state == nullptr) return false;
  const auto table = [&](std::string_view name) -> const ValueNode* {
    const Ref* value = tree.find(state, name);
    return value == nullptr ? nullptr : as_node(*value, NodeKind::dict);
  };
  const ValueNode* parameters = table(kTables[0]);
  const ValueNode* buffers = table(kTables[1]);
  const ValueNode* below = table(kTables[2]);
  if (below == nullptr && (parameters == nullptr || buffers == nullptr)) return false;
  const Ref* hidden = tree.find(state, "_non_persistent_buffers_set");
  out.add({.entries = parameters, .take = Take::present});
  out.add({.entries = buffers,
           .take = Take::present,
           .except = hidden == nullptr ? nullptr : as_node(*hidden, NodeKind::set)});
  out.add({.entries = below, .take = Take::present});
  out.is_model = true;
  return true;
}

// In Python they are attributes of the module.
std::span<const std::string_view> Modules::attribute_tables() const noexcept {
  return kTables;
}

const Modules& modules() noexcept {
  static const Modules all;
  return all;
}

// state_dict() of a script module: parameters, buffers, then what is below. Without its code every tensor
// counts.
bool ScriptModules::parts_of(const ValueTree& tree, const ValueNode& object, ObjectParts& out) const {
  if (!tree.type_name(object.type).starts_with(kScript)) return Modules::parts_of(tree, object, out);
  const ValueNode* state = as_node(object.object->state, NodeKind::dict);
  if (state == nullptr) return true;
  const auto known = script_.find(tree.type_name(object.type));
  if (known != script_.end()) {
    out.add({.entries = state, .take = Take::named, .names = &known->second.parameters});
    out.add({.entries = state, .take = Take::named, .names = &known->second.buffers});
  } else {
    out.add({.entries = state, .take = Take::tensors});
  }
  out.add({.entries = state, .take = Take::objects, .prefix = kScript});
  return true;
}

bool is_optimizer(const Value& value) {
  if (value.kind() != Kind::dict) return false;
  const auto state = value.find("state");
  const auto groups = value.find("param_groups");
  return state && groups && state->kind() == Kind::dict && groups->kind() == Kind::list;
}

}  // namespace ballast::torch
