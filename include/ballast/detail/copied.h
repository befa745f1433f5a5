// SPDX-License-Identifier: Apache-2.0
// The templates behind copy(model) of module.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "ballast/detail/collect.h"

#pragma GCC visibility push(default)

namespace ballast::detail {

/// Own memory for the tensors of a model: what lies on the same bytes stays on the same bytes.
class TensorCopies {
 public:
  explicit TensorCopies(const Slots& slots);

  /// The view of the new memory that shows what `tensor` shows; itself when it has no bytes or is not in the
  /// slots.
  [[nodiscard]] Tensor operator()(const Tensor& tensor) const;

  /// What `object` became, when shared pointers met it before.
  std::shared_ptr<void>& shared(const void* object);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Refuses an object of a class derived from the one its pointer names: its own part would be lost.
void require_type(const std::type_info& found, const std::type_info& wanted);

template <class T>
T copied(const T& member, TensorCopies& copies);

template <class Pointer>
Pointer copied_pointer(const Pointer& pointer, TensorCopies& copies) {
  using T = typename Pointer::element_type;
  static_assert(std::is_same_v<Pointer, std::unique_ptr<T>> || std::is_same_v<Pointer, std::shared_ptr<T>>,
                "ballast: copy() cannot make a pointer with a deleter of its own");
  if (!pointer) return nullptr;
  if constexpr (std::is_polymorphic_v<T>) require_type(typeid(*pointer), typeid(T));
  if constexpr (kIsA<Pointer, std::shared_ptr>) {
    if (copies.shared(pointer.get()) == nullptr) {
      auto made = std::make_shared<std::remove_const_t<T>>(copied(*pointer, copies));
      copies.shared(pointer.get()) = std::move(made);
    }
    return std::static_pointer_cast<T>(copies.shared(pointer.get()));
  } else {
    return std::make_unique<T>(copied(*pointer, copies));
  }
}

template <class Container>
Container copied_container(const Container& container, TensorCopies& copies) {
  Container result;
  for (const auto& element : container) {
    if constexpr (kIsA<Container, std::map>)
      result.emplace(element.first, copied(element.second, copies));
    else
      result.push_back(copied(element, copies));
  }
  return result;
}

template <class Tuple>
Tuple copied_tuple(const Tuple& tuple, TensorCopies& copies) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Tuple{copied(std::get<I>(tuple), copies)...};
  }
  (std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}

template <std::size_t I = 0, class Variant>
Variant copied_variant(const Variant& variant, TensorCopies& copies) {
  if constexpr (I + 1 < std::variant_size_v<Variant>)
    if (variant.index() != I) return copied_variant<I + 1>(variant, copies);
  return Variant(std::in_place_index<I>, copied(std::get<I>(variant), copies));
}

// All of a struct whose fields reflection finds; of another class what its own copy constructor gives, and
// the fields it lists.
template <class T>
T copied_struct(const T& object, TensorCopies& copies) {
  if constexpr (ListsFields<T>) {
    static_assert(std::is_copy_constructible_v<T>,
                  "ballast: copy() needs a copy constructor of a class that lists its fields");
    T result(object);
    for_each_field(result, [&](std::string_view /*name*/, auto& field) {
      field = copied(std::as_const(field), copies);
    });
    if constexpr (requires { result.copied_from(object); }) result.copied_from(object);
    return result;
  } else {
    return std::apply([&](const auto&... fields) { return T{copied(fields, copies)...}; },
                      tie_fields(object));
  }
}

template <class T>
T copied(const T& member, TensorCopies& copies) {
  if constexpr (std::is_same_v<T, Tensor>)
    return copies(member);
  else if constexpr (is_configuration<T>() || std::is_same_v<T, std::monostate>)
    return member;
  else if constexpr (kIsA<T, std::vector> || kIsA<T, std::map>)
    return copied_container(member, copies);
  else if constexpr (kIsArray<T> || kIsA<T, std::tuple> || kIsA<T, std::pair>)
    return copied_tuple(member, copies);
  else if constexpr (kIsPointer<T>)
    return copied_pointer(member, copies);
  else if constexpr (kIsA<T, std::optional>)
    return member ? T(copied(*member, copies)) : T();
  else if constexpr (kIsA<T, std::variant>)
    return copied_variant(member, copies);
  else
    return copied_struct(member, copies);
}

}  // namespace ballast::detail

#pragma GCC visibility pop
