// SPDX-License-Identifier: Apache-2.0
// How the writer walks a tree of Values without recursing: a container on a stack, and the next of its
// children.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/torch/pickle_forms.h"

namespace ballast::torch {

/// The same number for two handles of one value, and for nothing else of its tree.
[[nodiscard]] std::uint64_t identity(const Value& value);

struct Frame {
  Value value;
  Form form;
  std::size_t next = 0;

  /// A dict's children are key, value, key, value, …
  [[nodiscard]] std::size_t child_count() const;
  [[nodiscard]] Value child(std::size_t index) const;
  /// What an OrderedDict carries besides its items (a state dict's _metadata): one more child, the last.
  [[nodiscard]] std::optional<Value> attributes() const;
  /// The child that was taken last, for a path in a message.
  [[nodiscard]] std::string label() const;
};

}  // namespace ballast::torch
