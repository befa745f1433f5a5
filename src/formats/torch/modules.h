// SPDX-License-Identifier: Apache-2.0
// What PyTorch's classes hold: a module is walked as its state_dict() would be, without running anything.
#pragma once

#include "checkpoint/object_classes.h"
#include "formats/torch/script.h"

namespace ballast::torch {

/// Modules by the tables of their state, whatever their class is called. Nested tensors are left out.
class Modules : public ObjectClasses {
 public:
  bool parts_of(const ValueTree& tree, const ValueNode& object, ObjectParts& out) const override;
  [[nodiscard]] std::span<const std::string_view> attribute_tables() const noexcept override;
};

/// For every tree of PyTorch's.
[[nodiscard]] const Modules& modules() noexcept;

/// Of a TorchScript archive, whose code says which tensors of a class are parameters and buffers.
class ScriptModules final : public Modules {
 public:
  explicit ScriptModules(const ScriptClasses& script) : script_(script) {}

  bool parts_of(const ValueTree& tree, const ValueNode& object, ObjectParts& out) const override;

 private:
  const ScriptClasses& script_;
};

/// What an optimizer's state_dict() gives.
[[nodiscard]] bool is_optimizer(const Value& value);

}  // namespace ballast::torch
