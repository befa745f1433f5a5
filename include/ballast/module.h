// SPDX-License-Identifier: Apache-2.0
// A model is a struct: its fields are its parameter names. They are found by reflection.
// Members of a model may be
//   - Tensor, and layers (nn.h, or your own with `static constexpr LayerKind kind`),
//   - structs of such members: aggregates of up to 128 fields as they are, other classes with
//   BALLAST_FIELDS(a, b),
//   - std::vector, array, tuple (path segments 0, 1, …), std::map<std::string, …> (its keys), std::optional,
//   unique_ptr, shared_ptr
//     and std::variant (no segment of their own) of all these,
//   - arithmetic types, enums, strings, std::function and containers of those: configuration, skipped,
//   - Skip<T>: anything else that is none of the model's parameters.
// A trailing underscore is not part of a name: `default_` has the key "default".
// What cannot be such a member does not compile, with a sentence that says why.
//
// Throws: Errc::too_deep for members nested more than 64 deep (a cycle of pointers), and what the functions
// say. Owns: a model its tensors, which keep their bytes; what is given are views of them. Threads: several
// at once for different models, and for one that nobody changes. Costs: a walk over the members; copy() and
// init() take memory, the others none.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ballast/detail/collect.h"
#include "ballast/detail/copied.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

/// A member that holds no parameters, whatever its type.
template <class T>
struct Skip {
  T value{};  ///< what is skipped

  /// The value.
  T& operator*() noexcept { return value; }

  /// The value.
  const T& operator*() const noexcept { return value; }

  /// The value.
  T* operator->() noexcept { return &value; }

  /// The value.
  const T* operator->() const noexcept { return &value; }

  BALLAST_FIELDS();
};

/// A member whose own name is not part of the path: `Flat<nn::Conv2d> conv{{2, 2, 3}};` has the keys weight
/// and bias.
template <class T>
struct Flat {
  T value;  ///< what has no name before its own

  /// The value.
  T& operator*() noexcept { return value; }

  /// The value.
  const T& operator*() const noexcept { return value; }

  /// The value.
  T* operator->() noexcept { return &value; }

  /// The value.
  const T* operator->() const noexcept { return &value; }

  static constexpr void visit_fields(auto& self, auto&& visit) { visit(std::string_view(), self.value); }
};

/// Something load() and save() take for a model. Whether the fields of a class can be found is not asked
/// here: a static_assert says so, in one sentence, where a concept would list every function it did not fit.
template <class T>
concept Module = std::is_class_v<T> && !std::is_same_v<T, Tensor> && !detail::is_configuration<T>();

/// f(std::string_view path, Tensor&, LayerKind) for every tensor, parameters and buffers, in order of
/// declaration.
template <Module Model, class F>
void for_each_tensor(Model& model, F&& f) {
  const Slots slots = detail::collect_slots(model, detail::Collector::Alternatives::held_only);
  for (const Slot& slot : slots.slots) f(std::string_view(slot.path), *slot.tensor, slot.kind);
}

/// The same for a model that may not be changed.
template <Module Model, class F>
void for_each_tensor(const Model& model, F&& f) {
  const Slots slots = detail::collect_slots(model, detail::Collector::Alternatives::held_only);
  for (const Slot& slot : slots.slots) f(std::string_view(slot.path), std::as_const(*slot.tensor), slot.kind);
}

/// A tensor that training would change.
struct Parameter {
  std::string path;  ///< its name: "blocks.0.conv.weight"
  LayerKind kind;    ///< of the layer it belongs to
  Tensor tensor;     ///< a view of the model's
};

/// What training would change: every tensor but the buffers of the norms, in order of declaration.
template <Module Model>
[[nodiscard]] std::vector<Parameter> parameters(const Model& model) {
  std::vector<Parameter> result;
  for (const Slot& slot : detail::collect_slots(model, detail::Collector::Alternatives::held_only).slots) {
    if (!detail::is_buffer(slot)) result.push_back({slot.path, slot.kind, *slot.tensor});
  }
  return result;
}

/// Writes the model as a tree: members, shapes, number of parameters.
template <Module Model>
void print(const Model& model, std::ostream& out) {
  detail::print(detail::collect_slots(model, detail::Collector::Alternatives::held_only),
                detail::type_name<Model>(), out);
}

/// A model of its own: every tensor in new memory, in the layout it had, and nothing shared with the
/// original, not even through shared pointers. What is tied there (the same bytes under two names, as they
/// are or transposed; one module behind two shared pointers) is tied here. Reads the bytes, and throws what
/// that throws; tensors without bytes stay so. Members in Skip<T> and fields a class does not list are copied
/// as C++ copies them. Errc::unsupported for a pointer to a base that holds a derived class. (Copying the
/// struct itself copies views: both models look at the same weights.)
template <Module Model>
[[nodiscard]] Model copy(const Model& model) {
  detail::TensorCopies copies(detail::collect_slots(model, detail::Collector::Alternatives::held_only));
  return detail::copied(model, copies);
}

namespace detail {
std::vector<std::string> initialize(const Slots& slots, std::uint64_t seed);
}

/// Gives every tensor that has no data yet its first value: what was loaded stays. The same seed gives the
/// same model everywhere. Tensors outside layers become zeros. Returns the paths of those it filled.
/// Errc::invalid_argument for a tensor without a shape.
template <Module Model>
std::vector<std::string> init(Model& model, std::uint64_t seed = 0) {
  return detail::initialize(detail::collect_slots(model, detail::Collector::Alternatives::held_only), seed);
}

}  // namespace ballast

#pragma GCC visibility pop
