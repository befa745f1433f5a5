// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/distributed.h"

#include <optional>

namespace ballast::torch {
namespace {

constexpr std::size_t kMostDimensions = 64;

std::span<const Ref> elements(Ref value) {
  const ValueNode* node = as_kind(value, NodeKind::tuple);
  if (node == nullptr) node = as_kind(value, NodeKind::list);
  return node == nullptr ? std::span<const Ref>() : std::span<const Ref>(node->refs, node->size);
}

// Of an object: what it was given as its state.
Ref attribute_of(Objects& objects, Ref object, std::string_view name) {
  const ValueNode* node = as_kind(object, NodeKind::object);
  const ValueNode* state = node == nullptr ? nullptr : as_dict(node->object->state);
  const Ref* found = state == nullptr ? nullptr : objects.find_now(state, name);
  return found == nullptr ? Ref::none() : *found;
}

// The arguments are those of _make_wrapper_subclass: class, dtype, size, …
std::optional<Shape> whole_shape(Ref arguments) {
  const auto all = elements(arguments);
  if (all.size() < 3 || as_kind(all[2], NodeKind::tuple) == nullptr) return std::nullopt;
  const auto sizes = elements(all[2]);
  if (sizes.size() > kMostDimensions) return std::nullopt;
  Shape shape;
  for (const Ref size : sizes) {
    if (!size.is_small()) return std::nullopt;
    shape.push_back(size.small());
  }
  return shape;
}

// " by Shard(0), Replicate()": one for each dimension of the mesh of processes.
std::string placements(Objects& objects, Ref state) {
  const ValueNode* attributes = as_dict(state);  // or (None, attributes)
  if (attributes == nullptr && !elements(state).empty()) attributes = as_dict(elements(state).back());
  const Ref* spec = attributes == nullptr ? nullptr : objects.find_now(attributes, "_spec");
  std::string text;
  for (const Ref each :
       elements(spec == nullptr ? Ref::none() : attribute_of(objects, *spec, "placements"))) {
    const ValueNode* node = as_kind(each, NodeKind::object);
    if (node == nullptr || text.size() > 200) return {};
    const std::string_view type = objects.tree().type_name(node->type);
    const Ref dim = attribute_of(objects, each, "dim");
    text += fmt::format("{}{}({})", text.empty() ? " by " : ", ", display(type.substr(type.rfind('.') + 1)),
                        dim.is_small() ? std::to_string(dim.small()) : "");
  }
  return text;
}

}  // namespace

void note_part_of_tensor(Objects& objects, const ValueNode* type, const Call& call) {
  const std::string_view name = objects.tree().type_name(type->type);
  if (!name.starts_with("torch.distributed.") || !name.ends_with(".DTensor")) return;
  objects.ledger().note_left_out(
      "tensors of torch.distributed (DTensor): _local_tensor is the part of each that one process (rank) "
      "held; full_tensor() in PyTorch, on all of them, makes it whole");
  if (const auto shape = whole_shape(call.args[2]))
    objects.ledger().note_left_out(fmt::format("{}: a part of a tensor {}{}", objects.location(),
                                               to_string(*shape), placements(objects, call.args[3])));
}

}  // namespace ballast::torch
