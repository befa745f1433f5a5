// SPDX-License-Identifier: Apache-2.0
// The templates behind module.h: a walk over a model by reflection that collects its Slots. All work is
// done elsewhere, on those.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "ballast/detail/layer_kind.h"
#include "ballast/detail/reflect.h"
#include "ballast/detail/slots.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

template <class T>
struct Flat;

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool kIsA = false;
template <template <class...> class Template, class... Args>
inline constexpr bool kIsA<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

template <class T>
inline constexpr bool kIsPointer = kIsA<T, std::unique_ptr> || kIsA<T, std::shared_ptr>;

/// What may be a model though it has no fields.
template <class T>
inline constexpr bool kIsContainer =
    kIsA<T, std::vector> || kIsArray<T> || kIsA<T, std::tuple> || kIsA<T, std::pair> || kIsA<T, std::map> ||
    kIsA<T, std::variant> || kIsA<T, std::optional> || kIsPointer<T>;

template <class T>
inline constexpr bool kIsFlat = false;
template <class T>
inline constexpr bool kIsFlat<Flat<T>> = true;

template <class T>
consteval bool is_configuration();

template <class... Args>
consteval bool all_configuration(std::type_identity<std::tuple<Args...>>) {
  return (is_configuration<Args>() && ...);
}

/// A std::function or a Function: known by what they can do, so that <functional> need not be read.
template <class T>
inline constexpr bool kIsCallback = kIsA<T, Function> || requires {
  typename T::result_type;
  requires std::is_class_v<T> && std::is_constructible_v<T, std::nullptr_t>;
  &T::operator();
};

template <class... Args>
consteval bool all_configuration(std::type_identity<std::variant<Args...>>) {
  return (is_configuration<Args>() && ...);
}

template <class A, class B>
consteval bool all_configuration(std::type_identity<std::pair<A, B>>) {
  return is_configuration<A>() && is_configuration<B>();
}

template <class T>
consteval bool is_configuration() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || kIsA<T, std::basic_string> ||
                kIsA<T, std::basic_string_view> || kIsCallback<T> ||
                std::is_same_v<std::remove_cv_t<T>, const char*> ||
                std::is_same_v<std::remove_cv_t<T>, Dims>) {
    return true;
  } else if constexpr (kIsA<T, std::vector> || kIsArray<T> || kIsA<T, std::optional>) {
    return is_configuration<typename T::value_type>();
  } else if constexpr (kIsA<T, std::map>) {
    return is_configuration<typename T::mapped_type>();
  } else if constexpr (kIsA<T, std::tuple> || kIsA<T, std::variant> || kIsA<T, std::pair>) {
    return all_configuration(std::type_identity<T>{});
  } else {
    return false;
  }
}

/// A static `kind`: a member of that name is a member like any other.
template <class T>
concept HasKind = requires {
  requires std::is_same_v<decltype(&T::kind), const LayerKind*>;
};

template <class T>
consteval LayerKind kind_of() {
  if constexpr (HasKind<T>)
    return T::kind;
  else
    return LayerKind::none;
}

template <class T>
Node node_of(T& object) {
  Node node{.path = {},
            .type = std::string(type_name<T>()),
            .kind = kind_of<T>(),
            .first_slot = 0,
            .object = &object,
            .rtti = &typeid(T)};
  if constexpr (requires {
                  { object.place.path } -> std::same_as<std::string&>;
                })
    node.layer_path = &object.place.path;
  if constexpr (requires(std::string_view field, Tensor & value) { object.adjust_initial(field, value); })
    node.adjust_initial = [&object](std::string_view field, Tensor& value) {
      object.adjust_initial(field, value);
    };
  return node;
}

template <class T>
void collect(Collector& out, T& member);

// What load() could not fill: const, or a C array. Configuration may be const.
template <class T>
inline constexpr bool kCanBeMember =
    !std::is_array_v<T> && (!std::is_const_v<T> || is_configuration<std::remove_const_t<T>>());

template <class Struct, std::size_t I>
consteval bool require_member() {
  using Member = std::remove_reference_t<decltype(std::get<I>(tie_fields(std::declval<Struct&>())))>;
  if constexpr (!kCanBeMember<Member>) refuse_member<Struct, address_of_field<Struct, I>(), Member>();
  return kCanBeMember<Member>;
}

/// A static_assert for a struct that is no model; false then, so that nothing follows it.
template <class T>
consteval bool require_members() {
  if constexpr (ListsFields<T>) {
    return true;
  } else if constexpr (require_fields<T>()) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (require_member<T, I>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(tie_fields(std::declval<T&>()))>>{});
  } else {
    return false;
  }
}

template <class T>
void collect_fields(Collector& out, T& object) {
  const auto visit = [&out](std::string_view name, auto& field) {
    const Collector::Scope scope(out,
                                 kIsFlat<std::remove_cvref_t<decltype(field)>> ? std::string_view() : name);
    collect(out, field);
  };
  for_each_field(object, visit);
}

template <class T>
void collect_struct(Collector& out, T& object) {
  if constexpr (!kIsFlat<T>) out.node(node_of(object));
  if constexpr (HasKind<T>) {
    const Collector::LayerScope layer(out, T::kind);
    collect_fields(out, object);
  } else {
    collect_fields(out, object);
  }
}

template <class T>
void collect_indexed(Collector& out, std::size_t index, T& element) {
  const Collector::Scope scope(out, index);
  collect(out, element);
}

// A layer of which the file's shapes say all there is to know, such as nn::Linear: every one there may be,
// still without sizes, and how it takes them.
template <class T>
concept MadeFromShapes = requires(T& layer, std::span<const Shape> shapes) {
  { T::without_sizes() } -> std::same_as<std::vector<T>>;
  { layer.take_sizes(shapes) } -> std::same_as<bool>;
};

template <class T, class Emplace>
void collect_value(Collector& out, std::uint32_t choice, T value, const Emplace& emplace) {
  const auto fresh = std::make_shared<T>(std::move(value));
  Function<bool(std::span<const Shape>)> take_sizes;
  if constexpr (MadeFromShapes<T>)
    take_sizes = [fresh](std::span<const Shape> shapes) { return fresh->take_sizes(shapes); };
  out.begin_alternative(
      choice, type_name<T>(), [fresh, emplace] { emplace(std::move(*fresh)); }, std::move(take_sizes));
  collect(out, *fresh);
  out.end_alternative(choice);
}

// One alternative of a variant, or the value of an empty optional or pointer; `emplace(T&&)` puts it into the
// model.
template <class T, class Emplace>
void collect_fresh(Collector& out, std::uint32_t choice, const Emplace& emplace) {
  // NOLINTNEXTLINE(bugprone-branch-clone): what is no constructible T must not be looked at further
  if constexpr (!std::is_move_constructible_v<T>) {
    out.alternative_without_default(choice, type_name<T>());
  } else if constexpr (MadeFromShapes<T>) {
    for (T& each : T::without_sizes()) collect_value<T>(out, choice, std::move(each), emplace);
  } else if constexpr (std::is_default_constructible_v<T>) {
    collect_value<T>(out, choice, T(), emplace);
  } else {
    out.alternative_without_default(choice, type_name<T>());
  }
}

template <std::size_t I, class Variant>
void collect_alternative(Collector& out, std::uint32_t choice, Variant& variant) {
  using T = std::variant_alternative_t<I, Variant>;
  if (T* held = std::get_if<I>(&variant)) {
    out.begin_alternative(choice, type_name<T>(), {});
    collect(out, *held);
    out.end_alternative(choice);
  } else {
    collect_fresh<T>(out, choice, [&variant](T&& value) { variant.template emplace<I>(std::move(value)); });
  }
}

template <class Variant>
void collect_variant(Collector& out, Variant& variant) {
  if (!out.all_alternatives()) return std::visit([&out](auto& held) { collect(out, held); }, variant);
  const std::uint32_t choice = out.begin_choice(false);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (collect_alternative<I>(out, choice, variant), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>{});
}

template <class T>
void collect_optional(Collector& out, std::optional<T>& optional) {
  if (optional) return collect(out, *optional);
  if (!out.all_alternatives()) return;
  collect_fresh<T>(out, out.begin_choice(true),
                   [&optional](T&& value) { optional.emplace(std::move(value)); });
}

template <class Pointer>
void collect_pointer(Collector& out, Pointer& pointer) {
  if (pointer) return collect(out, *pointer);
  if (!out.all_alternatives()) return;
  using T = typename Pointer::element_type;
  const std::uint32_t choice = out.begin_choice(true);
  if (!out.file_may_have_this()) return;
  if constexpr (std::is_same_v<Pointer, std::unique_ptr<T>> || std::is_same_v<Pointer, std::shared_ptr<T>>)
    collect_fresh<T>(out, choice, [&pointer](T&& value) { pointer = std::make_unique<T>(std::move(value)); });
  else
    out.alternative_without_default(choice, type_name<T>());  // a deleter of its own
}

template <class Tuple>
void collect_tuple(Collector& out, Tuple& tuple) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (collect_indexed(out, I, std::get<I>(tuple)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}

template <class T>
inline constexpr bool kMayHaveFields = std::is_class_v<T> && (ListsFields<T> || std::is_aggregate_v<T>);

template <class T>
void collect(Collector& out, T& member) {
  if constexpr (std::is_same_v<T, Tensor>) {
    out.tensor(member);
  } else if constexpr (is_configuration<std::remove_const_t<T>>() || std::is_same_v<T, std::monostate>) {
    // not a parameter
  } else if constexpr (kIsA<T, std::vector> || kIsArray<T>) {
    for (std::size_t i = 0; i < member.size(); ++i) collect_indexed(out, i, member[i]);
  } else if constexpr (kIsA<T, std::tuple> || kIsA<T, std::pair>) {
    collect_tuple(out, member);
  } else if constexpr (kIsA<T, std::map>) {
    constexpr bool kNamed = std::is_same_v<typename T::key_type, std::string>;
    static_assert(
        kNamed,
        "ballast: the key of a std::map in a model must be std::string: it is part of the parameters' names");
    if constexpr (kNamed) {
      for (auto& [name, value] : member) {
        const Collector::Scope scope(out, std::string_view(name));
        collect(out, value);
      }
    }
  } else if constexpr (kIsPointer<T>) {
    collect_pointer(out, member);
  } else if constexpr (kIsA<T, std::optional>) {
    collect_optional(out, member);
  } else if constexpr (kIsA<T, std::variant>) {
    collect_variant(out, member);
  } else {
    static_assert(kMayHaveFields<T>,
                  "ballast: a member of this type is neither a Tensor, a layer, a struct, a standard "
                  "container of those nor configuration: "
                  "list the fields of a class of your own with BALLAST_FIELDS(...), or wrap what holds no "
                  "parameters in ballast::Skip<T>");
    if constexpr (kMayHaveFields<T>)
      if constexpr (require_members<T>()) collect_struct(out, member);
  }
}

/// The model is not changed, but the slots point into it: a const model's slots must be treated as const.
template <class Model>
Slots collect_slots(const Model& model, Collector::Alternatives which, const FileHas& file_has = {}) {
  Collector collector(which, file_has);
  if constexpr (kIsContainer<Model> || require_members<Model>())
    collect(collector, const_cast<Model&>(model));
  return collector.take();
}

[[nodiscard]] bool is_buffer(const Slot& slot) noexcept;
void print(const Slots& slots, std::string_view type, std::ostream& out);

}  // namespace detail

}  // namespace ballast

#pragma GCC visibility pop
