// SPDX-License-Identifier: Apache-2.0
// The fields of a struct, by name, without a macro: how many there are (aggregate initialisation tells),
// references to them (structured bindings), their names (the compiler spells them in __PRETTY_FUNCTION__).
// Works alike on g++ 12 and clang 14; not API.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace ballast::detail {

inline constexpr std::size_t kMaxFields = 128;

// Converts to whatever a field is, where nothing is evaluated. It has a body because clang may instantiate
// callers of it, and a type without linkage could not get one elsewhere.
struct Any {
  template <class T>
  operator T() const {
    __builtin_unreachable();
  }
};

// Walks n upwards: skips the n for which T{any × n} is invalid (later fields lack a default), then takes the
// last valid one.
template <class T, bool Found = false, class... Args>
consteval std::size_t count_fields() {
  if constexpr (sizeof...(Args) > kMaxFields)
    return sizeof...(Args);
  else if constexpr (requires { T{Args{}..., Any{}}; })
    return count_fields<T, true, Args..., Any>();
  else if constexpr (!Found && sizeof...(Args) < kMaxFields)
    return count_fields<T, false, Args..., Any>();
  else
    return Found ? sizeof...(Args) : 0;
}

template <class T>
inline constexpr std::size_t kFieldCount = std::is_empty_v<T> ? 0 : count_fields<T>();

template <class T>
struct AnyBase {  // converts to what T derives from, and to nothing else
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>) operator U() const { __builtin_unreachable(); }
};

template <std::size_t>
using AnyAt = Any;

// Bases come first among what an aggregate is initialised from.
template <class T, std::size_t... I>
consteval bool has_base(std::index_sequence<0, I...>) {
  return requires {
    T{AnyBase<T>{}, AnyAt<I>{}...};
  };
}

template <class T, std::size_t... Before, std::size_t... After>
consteval bool takes_array(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires {
    T{AnyAt<Before>{}..., {Any{}, Any{}}, AnyAt<After>{}...};
  };
}

// Elements of a C array were counted one by one: `Before` of them, then one, or two of them in braces.
template <class T, std::size_t... Before, std::size_t... After>
consteval bool is_array_at(std::index_sequence<Before...>, std::index_sequence<After...>) {
  if constexpr (takes_array<T>(std::index_sequence<Before...>{}, std::index_sequence<>{}))
    return !takes_array<T>(std::index_sequence<Before...>{}, std::index_sequence<After...>{});
  else
    return false;
}

template <class T, std::size_t... I>
consteval bool has_array(std::index_sequence<I...>) {
  return (is_array_at<T>(std::make_index_sequence<I>{}, std::make_index_sequence<sizeof...(I) - 1 - I>{}) ||
          ...);
}

// How many of the `Flat` elements that were counted are those of the member that begins behind `Before` of
// them.
template <class T, std::size_t Flat, std::size_t Size, std::size_t... Before>
consteval std::size_t member_size(std::index_sequence<Before...> before) {
  constexpr std::size_t kBehind = Flat - sizeof...(Before) - Size;
  if constexpr (Size == 1 &&
                !is_array_at<T>(std::index_sequence<Before...>{}, std::make_index_sequence<kBehind>{}))
    return 1;
  else if constexpr (kBehind == 0 ||
                     takes_array<T>(std::index_sequence<Before...>{}, std::make_index_sequence<kBehind>{}))
    return Size;
  else
    return member_size<T, Flat, Size + 1>(before);
}

// Members, where kFieldCount has counted elements.
template <class T, std::size_t Flat, std::size_t Begin = 0>
consteval std::size_t count_members() {
  if constexpr (Begin >= Flat)
    return 0;
  else
    return 1 + count_members<T, Flat, Begin + member_size<T, Flat, 1>(std::make_index_sequence<Begin>{})>();
}

/// Why the fields of a struct cannot be found; all static_asserts about it read these.
template <class T>
inline constexpr bool kIsAggregate = std::is_aggregate_v<T>;
template <class T>
inline constexpr bool kCanBeCounted = std::is_empty_v<T> || kFieldCount<T> > 0;
template <class T>
inline constexpr bool kFewEnoughFields = kFieldCount<T> <= kMaxFields;
template <class T>
consteval bool has_no_base() {
  if constexpr (kFieldCount<T> == 0)
    return true;
  else
    return !has_base<T>(std::make_index_sequence<kFieldCount<T>>{});
}

template <class T>
inline constexpr bool kHasNoBase = has_no_base<T>();
template <class T>
inline constexpr bool kHasNoArray = !has_array<T>(std::make_index_sequence<kFieldCount<T>>{});

template <class T>
inline constexpr bool kHasNoBitField = false;  // asked only where there is one

// What an arm of tie_fields() gives back. Only a bit-field is nothing std::tie can refer to; clang 14, which
// lets no requires-expression see a binding, says so itself, and names it.
// So does g++ where there are more than sixteen fields: asking first would cost all who include this a
// hundredth of their memory.
#define BALLAST_DETAIL_TIE_MANY(...) return std::tie(__VA_ARGS__);
#ifdef __clang__
#define BALLAST_DETAIL_TIE(...) return std::tie(__VA_ARGS__);
#else
#define BALLAST_DETAIL_TIE(...)                                                                   \
  if constexpr (requires { std::tie(__VA_ARGS__); }) {                                            \
    return std::tie(__VA_ARGS__);                                                                 \
  } else {                                                                                        \
    static_assert(kHasNoBitField<T>,                                                              \
                  "ballast: a member of this struct is a bit-field, which nothing can refer to: " \
                  "make it a plain member, or list the other fields with BALLAST_FIELDS(...)");   \
    return std::tuple<>{};                                                                        \
  }
#endif

template <class T, std::size_t n = kFieldCount<std::remove_cv_t<T>>>
constexpr auto tie_fields([[maybe_unused]] T& object) {
  if constexpr (n == 0 || n > kMaxFields) return std::tuple<>{};
#include "ballast/detail/reflect_arms.inc"
}
#undef BALLAST_DETAIL_TIE
#undef BALLAST_DETAIL_TIE_MANY

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

template <class T>
struct Holder {
  const T value;
};
template <class T>
extern const Holder<T> never_defined;  // only its fields' addresses are used, at compile time

template <class P>
struct Wrap {  // clang before 17 refuses the address of a sub-object as a bare template argument
  P address;
};
template <class P>
Wrap(P) -> Wrap<P>;

template <class T, auto P>
consteval auto
field_signature() {  // returns auto: with string_view, GCC appends its meaning to the signature
  return __PRETTY_FUNCTION__;
}

consteval bool is_identifier(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

template <class T, std::size_t I, std::size_t n = kFieldCount<T>>
consteval auto address_of_field() {  // never a variable: that would need the object to be there
  return Wrap{std::addressof(std::get<I>(tie_fields<const T, n>(never_defined<T>.value)))};
}

// The last identifier in the signature.
template <class T, std::size_t I>
consteval std::string_view field_name() {
  std::string_view text = field_signature<T, address_of_field<T, I>()>();
  while (!is_identifier(text.back())) text.remove_suffix(1);
  std::size_t begin = text.size();
  while (is_identifier(text[begin - 1])) --begin;
  text.remove_prefix(begin);
  return text;
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// C++ keywords and private members end in an underscore that is not part of the key: default_ → default.
constexpr std::string_view key_of_field(std::string_view name) {
  if (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
  return name;
}

template <class T>
consteval auto type_signature() {
  return __PRETTY_FUNCTION__;
}

template <class T>
inline constexpr bool kIsNoArray = !std::is_array_v<T>;
template <class T>
inline constexpr bool kIsNotConst = !std::is_const_v<T>;

/// The one message for a member that cannot be a part of a model; `Member` shows the compiler's reader which.
template <class Struct, auto Member, class T>
consteval void refuse_member() {
  static_assert(kIsNoArray<T>, "ballast: a member of this struct is a C array: use std::array");
  if constexpr (kIsNoArray<T>)
    static_assert(
        kIsNotConst<T>,
        "ballast: a member of this struct is const, so nothing can be loaded into it: remove the const");
}

// The first member that is a C array, by its name.
template <class T, std::size_t I = 0>
consteval void refuse_array() {
  constexpr std::size_t kCount = count_members<T, kFieldCount<T>>();
  using Member = std::remove_reference_t<decltype(std::get<I>(tie_fields<T, kCount>(std::declval<T&>())))>;
  if constexpr (std::is_array_v<Member>)
    refuse_member<T, address_of_field<T, I, kCount>(), Member>();
  else
    refuse_array<T, I + 1>();
}

// Elements of arrays were counted, too, and may be what makes them many.
template <class T>
consteval void refuse_many() {
  constexpr bool kIsArray = has_array<T>(std::make_index_sequence<kMaxFields + 1>{});
  static_assert(!kIsArray, "ballast: a member of this struct is a C array: use std::array");
  static_assert(kIsArray,
                "ballast: this struct has more than 128 fields: list them in it with BALLAST_FIELDS(...)");
}

/// The one message for a struct whose fields cannot be found; false then, so that nothing follows it.
template <class T>
consteval bool require_fields() {
  static_assert(kIsAggregate<T>,
                "ballast: this struct has a constructor, a private or a virtual member, so its fields "
                "cannot be found: list them in it with BALLAST_FIELDS(...)");
  if constexpr (kIsAggregate<T>) {
    static_assert(
        kCanBeCounted<T>,
        "ballast: a member of this struct cannot be found (a reference, or one that cannot be moved?): "
        "list the fields in it with BALLAST_FIELDS(...)");
    if constexpr (!kFewEnoughFields<T>) refuse_many<T>();
    if constexpr (kCanBeCounted<T> && kFewEnoughFields<T>) {
      static_assert(kHasNoBase<T>,
                    "ballast: this struct derives from another one: make that a member, ballast::Flat<Base>, "
                    "or list all fields, the base's too, with BALLAST_FIELDS(...)");
      if constexpr (kHasNoBase<T>) {
        if constexpr (!kHasNoArray<T>) refuse_array<T>();
        return kHasNoArray<T>;
      }
    }
  }
  return false;
}

/// "Block" for app::Block<int>: for people, never for decisions.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = type_signature<T>();
  text.remove_prefix(text.find("T = ") + 4);
  text.remove_suffix(text.size() - text.find_last_of(']'));
  text = text.substr(0, text.find_first_of(";<"));
  if (const std::size_t scope = text.rfind("::"); scope != text.npos) text.remove_prefix(scope + 2);
  return text;
}

struct NoVisit {
  void operator()(std::string_view, auto&) const {}
};

template <class T>
concept ListsFields = requires(T& object) {
  T::visit_fields(object, NoVisit{});
};

/// visit(name, field) for every field, in order of declaration.
template <class T, class Visit>
constexpr void for_each_field(T& object, Visit&& visit) {
  using Struct = std::remove_cv_t<T>;
  if constexpr (ListsFields<Struct>) {
    Struct::visit_fields(object, visit);
  } else {
    if constexpr (require_fields<Struct>()) {
      auto fields = tie_fields(object);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (visit(key_of_field(field_name<Struct, I>()), std::get<I>(fields)), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<decltype(fields)>>{});
    }
  }
}

}  // namespace ballast::detail

#pragma GCC visibility pop

/// Inside a class, in its public part: these are the fields. For classes that are not aggregates, or to leave
/// fields out.
#define BALLAST_FIELDS(...)                                                   \
  static constexpr void visit_fields([[maybe_unused]] auto& ballast_self,     \
                                     [[maybe_unused]] auto&& ballast_visit) { \
    __VA_OPT__(BALLAST_DETAIL_EACH1(__VA_ARGS__))                             \
  }                                                                           \
  static_assert(true)
// The first sixteen fields by macros of their own, which costs the compiler next to nothing; what is left
// after them by one macro that is expanded again and again, which costs it a megabyte each time it is
// written.
#define BALLAST_DETAIL_VISIT(x) ballast_visit(::ballast::detail::key_of_field(#x), ballast_self.x);
#define BALLAST_DETAIL_EACH1(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH2(__VA_ARGS__))
#define BALLAST_DETAIL_EACH2(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH3(__VA_ARGS__))
#define BALLAST_DETAIL_EACH3(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH4(__VA_ARGS__))
#define BALLAST_DETAIL_EACH4(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH5(__VA_ARGS__))
#define BALLAST_DETAIL_EACH5(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH6(__VA_ARGS__))
#define BALLAST_DETAIL_EACH6(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH7(__VA_ARGS__))
#define BALLAST_DETAIL_EACH7(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH8(__VA_ARGS__))
#define BALLAST_DETAIL_EACH8(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH9(__VA_ARGS__))
#define BALLAST_DETAIL_EACH9(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH10(__VA_ARGS__))
#define BALLAST_DETAIL_EACH10(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH11(__VA_ARGS__))
#define BALLAST_DETAIL_EACH11(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH12(__VA_ARGS__))
#define BALLAST_DETAIL_EACH12(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH13(__VA_ARGS__))
#define BALLAST_DETAIL_EACH13(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH14(__VA_ARGS__))
#define BALLAST_DETAIL_EACH14(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH15(__VA_ARGS__))
#define BALLAST_DETAIL_EACH15(x, ...) BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EACH16(__VA_ARGS__))
#define BALLAST_DETAIL_EACH16(x, ...) \
  BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_EXPAND(BALLAST_DETAIL_EACH(__VA_ARGS__)))
#define BALLAST_DETAIL_EACH(x, ...) \
  BALLAST_DETAIL_VISIT(x) __VA_OPT__(BALLAST_DETAIL_AGAIN BALLAST_DETAIL_PARENS(__VA_ARGS__))
#define BALLAST_DETAIL_AGAIN() BALLAST_DETAIL_EACH
#define BALLAST_DETAIL_PARENS ()
#define BALLAST_DETAIL_EXPAND(...) \
  BALLAST_DETAIL_EXPAND5(BALLAST_DETAIL_EXPAND5(BALLAST_DETAIL_EXPAND5(BALLAST_DETAIL_EXPAND5(__VA_ARGS__))))
#define BALLAST_DETAIL_EXPAND5(...) \
  BALLAST_DETAIL_EXPAND4(BALLAST_DETAIL_EXPAND4(BALLAST_DETAIL_EXPAND4(BALLAST_DETAIL_EXPAND4(__VA_ARGS__))))
#define BALLAST_DETAIL_EXPAND4(...) \
  BALLAST_DETAIL_EXPAND3(BALLAST_DETAIL_EXPAND3(BALLAST_DETAIL_EXPAND3(BALLAST_DETAIL_EXPAND3(__VA_ARGS__))))
#define BALLAST_DETAIL_EXPAND3(...) \
  BALLAST_DETAIL_EXPAND2(BALLAST_DETAIL_EXPAND2(BALLAST_DETAIL_EXPAND2(BALLAST_DETAIL_EXPAND2(__VA_ARGS__))))
#define BALLAST_DETAIL_EXPAND2(...) \
  BALLAST_DETAIL_EXPAND1(BALLAST_DETAIL_EXPAND1(BALLAST_DETAIL_EXPAND1(BALLAST_DETAIL_EXPAND1(__VA_ARGS__))))
#define BALLAST_DETAIL_EXPAND1(...) __VA_ARGS__
