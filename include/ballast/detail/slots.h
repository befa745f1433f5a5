// SPDX-License-Identifier: Apache-2.0
// What a model looks like to everything that is not a template: a list of slots (path, layer kind, Tensor*),
// the variants among its members as choices, and the tree they form. module.h makes it by reflection; load,
// save and print work on it.
#pragma once

#ifndef __cpp_rtti
#error "ballast: models need run-time type information: compile without -fno-rtti"
#include "ballast needs to be compiled without -fno-rtti"
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "ballast/detail/function.h"
#include "ballast/detail/layer_kind.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

inline constexpr std::uint32_t kAlways = 0xFFFFFFFF;

/// One tensor of a model.
struct Slot {
  std::string path;                  ///< "layers.0.norm.gamma"
  LayerKind kind = LayerKind::none;  ///< of the layer it belongs to
  std::uint32_t layer_size = 0;      ///< length of the layer's part of the path: 13 above ("layers.0.norm")
  std::uint32_t alternative = kAlways;  ///< it exists only when this alternative is chosen
  std::uint64_t index_segments =
      0;  ///< bit i: segment i of the path is a position in a vector, array or tuple
  Tensor* tensor = nullptr;

  /// The name inside its layer: "gamma".
  [[nodiscard]] std::string_view field() const noexcept {
    return std::string_view(path).substr(layer_size == 0 || layer_size == path.size() ? layer_size
                                                                                      : layer_size + 1);
  }

  [[nodiscard]] std::string_view layer() const noexcept {
    return std::string_view(path).substr(0, layer_size);
  }
};

/// One of the types a variant member can hold, or the value an empty optional or null pointer would hold.
struct Alternative {
  std::string type;           ///< "DwsConv", for messages
  std::uint32_t choice = 0;   ///< the Choice it is part of
  bool can_be_built = true;   ///< false: it has no default constructor and the variant does not hold it
  Function<void()> commit{};  ///< moves it into the model; empty for the one the model holds already
  /// A layer without sizes takes those that its tensors' shapes in the file ask for, in the order of its
  /// slots; false when there is no such layer. Empty for what has its sizes.
  Function<bool(std::span<const Shape> shapes)> take_sizes{};
};

/// A variant, or an optional or pointer that is empty: what it will hold is decided by the file.
struct Choice {
  std::string path;
  std::uint64_t index_segments = 0;
  std::uint32_t parent = kAlways;  ///< the alternative it lies in itself
  bool optional = false;           ///< nothing at all is an answer too
  std::size_t held = 0;            ///< position in `alternatives` of the one held now; its size when none
  std::vector<std::uint32_t> alternatives;  ///< positions in Slots::alternatives
};

/// A member that is not a tensor itself: a layer, or a struct of members.
struct Node {
  std::string path;
  std::string type;
  LayerKind kind = LayerKind::none;
  std::size_t first_slot = 0;  ///< how many slots come before its own
  void* object = nullptr;      ///< of the type `rtti` says
  const std::type_info* rtti = nullptr;
  std::string* layer_path = nullptr;  ///< where the layer keeps its path for messages, if it does
  /// What the layer wants changed in the first value of one of its tensors, if it does: a padding row of
  /// zeros.
  Function<void(std::string_view field, Tensor& value)> adjust_initial{};
};

struct Slots {
  std::vector<Slot> slots;  ///< in order of declaration
  std::vector<Choice> choices;
  std::vector<Alternative> alternatives;
  std::vector<Node> nodes;

  /// Tells every layer its path.
  void name_layers() const;
};

namespace detail {

/// Whether the file may have tensors at or below a path of the model.
using FileHas = Function<bool(std::string_view path)>;

/// Builds Slots while the templates of module.h walk a model.
class Collector {
 public:
  enum class Alternatives : std::uint8_t { held_only, all };

  explicit Collector(Alternatives which, FileHas file_has = {});

  /// While it lives, everything collected lies under `name`; an empty name adds nothing to the path.
  class Scope {
   public:
    Scope(Collector& collector, std::string_view name);
    Scope(Collector& collector, std::size_t index);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    Collector& collector_;
    std::size_t path_size_;
    std::uint32_t segments_;
    std::uint64_t index_segments_;
  };

  /// While it lives, tensors belong to a layer at this path.
  class LayerScope {
   public:
    LayerScope(Collector& collector, LayerKind kind);
    LayerScope(const LayerScope&) = delete;
    LayerScope& operator=(const LayerScope&) = delete;
    ~LayerScope();

   private:
    Collector& collector_;
    LayerKind kind_;
    std::uint32_t size_;
  };

  void tensor(Tensor& tensor);
  void node(Node node);  ///< its path and first_slot are filled in here

  [[nodiscard]] bool all_alternatives() const noexcept { return all_alternatives_; }

  /// Whether the file may have what a null pointer here would point to. A struct may point to its own kind:
  /// it is followed only as far as the file goes.
  [[nodiscard]] bool file_may_have_this() const;

  /// Returns what begin_alternative() and end_alternative() want to know.
  std::uint32_t begin_choice(bool optional);
  /// Without `commit` it is what the model holds.
  void begin_alternative(std::uint32_t choice, std::string_view type, Function<void()> commit,
                         Function<bool(std::span<const Shape>)> take_sizes = {});
  void end_alternative(std::uint32_t choice);
  void alternative_without_default(std::uint32_t choice, std::string_view type);

  [[nodiscard]] Slots take();

 private:
  void append(std::string_view segment, bool is_index);

  Slots slots_;
  std::string path_;
  std::uint32_t segments_ = 0;
  std::uint64_t index_segments_ = 0;
  LayerKind kind_ = LayerKind::none;
  std::uint32_t layer_size_ = 0;
  std::uint32_t alternative_ = kAlways;
  std::uint32_t alternatives_deep_ = 0;
  bool all_alternatives_;
  FileHas file_has_;
};

}  // namespace detail
}  // namespace ballast

#pragma GCC visibility pop
