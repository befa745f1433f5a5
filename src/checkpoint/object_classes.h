// SPDX-License-Identifier: Apache-2.0
// What the classes of a tree's objects mean: which parts of an object are its children, in the order in which
// they are named, and which objects are whole models. A reader that knows classes says so in a table of its
// own, and the tree points to it; nothing here knows a class by its name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/value_tree.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// The node, if it is one of this kind.
[[nodiscard]] inline const ValueNode* as_node(Ref value, NodeKind kind) {
  return value.is_node() && value.node()->kind == kind ? value.node() : nullptr;
}

/// Entries that count as an object's children: one of its tables, its state, its items.
struct ObjectPart {
  enum class Take : std::uint8_t {
    all,
    present,  // what is not None
    tensors,
    named,    // what is in `names`
    objects,  // of a class whose name begins with `prefix`
  };

  const ValueNode* entries = nullptr;  // dict, list, tuple
  Take take = Take::all;
  const ValueNode* except = nullptr;  // set of names that are left out
  const std::vector<std::string>* names = nullptr;
  std::string_view prefix = {};
};

class ObjectParts {
 public:
  /// Nothing and what is empty is no part. There are at most six.
  void add(const ObjectPart& part) {
    if (part.entries != nullptr && part.entries->size != 0) parts_[size_++] = part;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] const ObjectPart& operator[](std::size_t index) const { return parts_[index]; }

  bool is_model = false;           ///< a whole model
  std::string_view left_out = {};  ///< "a nested tensor": what it is, when its tensors have no names

 private:
  std::array<ObjectPart, 6> parts_ = {};
  std::size_t size_ = 0;
};

class ObjectClasses {
 public:
  ObjectClasses() = default;
  ObjectClasses(const ObjectClasses&) = delete;
  ObjectClasses& operator=(const ObjectClasses&) = delete;
  virtual ~ObjectClasses() = default;

  /// False for an object of a class it does not know: then everything in it counts.
  virtual bool parts_of(const ValueTree& tree, const ValueNode& object, ObjectParts& out) const = 0;
  /// Attributes of objects that are dicts, and whose entries are attributes of the object, too.
  [[nodiscard]] virtual std::span<const std::string_view> attribute_tables() const noexcept = 0;
};

}  // namespace ballast

#pragma GCC visibility pop
