// SPDX-License-Identifier: Apache-2.0
// Configurations as structs: read_config<T>() fills one from an object tree, save_config() writes JSON;
// load_file.h has load_config<T>(file, key). Fields are found by name, as in module.h, and may be bool,
// integers, floats, std::string, scoped enums (by the enumerator's name, or its number), std::optional (None,
// or not there), std::vector, array, tuple, pair, std::map<std::string, …> and structs of those. What does
// not fit its field exactly is Errc::type_mismatch with its path and Python type, a key that is not there is
// Errc::not_found. Only a std::optional has a default: where its key is not there, it stays what the struct
// says (std::optional<int> heads = 12; many writers leave out what is usual), and empty where it says
// nothing.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; and what the functions say. Owns: a configuration is a value of its own; a Value in
// it keeps its tree. Threads: every function may be called from several at once. Costs: in proportion to the
// configuration.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ballast/detail/file_options.h"
#include "ballast/detail/reflect.h"
#include "ballast/value.h"

#pragma GCC visibility push(default)

namespace ballast {
namespace detail {

// Where a value is, for messages; lives on the stack while a struct is read.
struct ConfigPath {
  const ConfigPath* parent = nullptr;
  std::string_view name = {};
  std::size_t index = 0;
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] bool read_bool(const Value& value, const ConfigPath& path);
[[nodiscard]] std::int64_t read_signed(const Value& value, const ConfigPath& path, std::int64_t lowest,
                                       std::int64_t highest);
[[nodiscard]] std::uint64_t read_unsigned(const Value& value, const ConfigPath& path, std::uint64_t highest);
/// `highest`: what the field's type can hold.
[[nodiscard]] double read_float(const Value& value, const ConfigPath& path, double highest,
                                std::int64_t highest_integer);
[[nodiscard]] std::string read_string(const Value& value, const ConfigPath& path);
/// The enumerator that `value` names; `names` may have empty entries.
[[nodiscard]] std::int64_t read_enum(const Value& value, const ConfigPath& path, std::string_view type,
                                     const std::string_view* names, std::size_t count);
/// A list, tuple or set; of `size` elements unless that is npos.
void require_sequence(const Value& value, const ConfigPath& path, std::size_t size);
void require_dict(const Value& value, const ConfigPath& path);
[[nodiscard]] std::string key_of(const Value& dict, std::size_t index, const ConfigPath& path);
/// Errc::not_found with the nearest names.
[[noreturn]] void missing_key(const Value& dict, const ConfigPath& path);
[[nodiscard]] std::optional<Value> field_of(const Value& dict, std::string_view name);

inline constexpr std::size_t kAnySize = static_cast<std::size_t>(-1);

inline constexpr std::size_t kEnumerators = 64;  // values 0 to 63 have names

template <class E, std::size_t V>
consteval std::string_view enumerator_name() {
  std::string_view text = field_signature<E, static_cast<E>(V)>();
  text.remove_suffix(text.size() - text.find_last_of(']'));
  std::size_t begin = text.size();
  while (begin > 0 && is_identifier(text[begin - 1])) --begin;
  text.remove_prefix(begin);
  return text.empty() || (text[0] >= '0' && text[0] <= '9') ? std::string_view()
                                                            : text;  // "(Colour)5": no such enumerator
}

template <class E>
constexpr std::array<std::string_view, kEnumerators> enumerator_names() {
  return []<std::size_t... V>(std::index_sequence<V...>) {
    return std::array<std::string_view, kEnumerators>{enumerator_name<E, V>()...};
  }
  (std::make_index_sequence<kEnumerators>{});
}

template <class T, template <class...> class Template>
inline constexpr bool kConfigIsA = false;
template <template <class...> class Template, class... Args>
inline constexpr bool kConfigIsA<Template<Args...>, Template> = true;
template <class T>
inline constexpr bool kConfigIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kConfigIsArray<std::array<T, N>> = true;

template <class T>
void read_value(const Value& value, T& out, const ConfigPath& path);

template <class T>
void read_struct(const Value& value, T& out, const ConfigPath& path) {
  require_dict(value, path);
  for_each_field(out, [&](std::string_view field, auto& member) {
    const ConfigPath inner{&path, field};
    const auto found = field_of(value, inner.name);
    if (found) return read_value(*found, member, inner);
    if constexpr (!kConfigIsA<std::remove_cvref_t<decltype(member)>, std::optional>)
      missing_key(value, inner);
  });
}

template <class T>
void read_tuple(const Value& value, T& out, const ConfigPath& path) {
  require_sequence(value, path, std::tuple_size_v<T>);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (read_value(value.element(I), std::get<I>(out), ConfigPath{&path, {}, I}), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<T>>{});
}

template <class T>
void read_value(const Value& value, T& out, const ConfigPath& path) {
  if constexpr (std::is_same_v<T, Value>) {
    out = value;
  } else if constexpr (std::is_same_v<T, bool>) {
    out = read_bool(value, path);
  } else if constexpr (std::is_enum_v<T>) {
    static constexpr auto kNames = enumerator_names<T>();
    out = static_cast<T>(read_enum(value, path, type_name<T>(), kNames.data(), kNames.size()));
  } else if constexpr (std::signed_integral<T>) {
    out = static_cast<T>(
        read_signed(value, path, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::unsigned_integral<T>) {
    out = static_cast<T>(read_unsigned(value, path, std::numeric_limits<T>::max()));
  } else if constexpr (std::floating_point<T>) {
    out = static_cast<T>(read_float(
        value, path, static_cast<double>(std::numeric_limits<T>::max()),
        std::int64_t{1} << (std::numeric_limits<T>::digits < 62 ? std::numeric_limits<T>::digits : 62)));
  } else if constexpr (std::is_same_v<T, std::string>) {
    out = read_string(value, path);
  } else if constexpr (kConfigIsA<T, std::optional>) {
    if (value.is_none()) return out.reset();
    read_value(value, out.emplace(), path);
  } else if constexpr (kConfigIsA<T, std::vector>) {
    require_sequence(value, path, kAnySize);
    out.clear();
    for (std::size_t i = 0; i < value.size(); ++i) {
      typename T::value_type element{};
      read_value(value.element(i), element, ConfigPath{&path, {}, i});
      out.push_back(std::move(element));
    }
  } else if constexpr (kConfigIsArray<T>) {
    require_sequence(value, path, std::tuple_size_v<T>);
    for (std::size_t i = 0; i < out.size(); ++i)
      read_value(value.element(i), out[i], ConfigPath{&path, {}, i});
  } else if constexpr (kConfigIsA<T, std::tuple> || kConfigIsA<T, std::pair>) {
    read_tuple(value, out, path);
  } else if constexpr (kConfigIsA<T, std::map>) {
    static_assert(std::is_same_v<typename T::key_type, std::string>,
                  "ballast: the key of a std::map in a configuration must be std::string");
    require_dict(value, path);
    out.clear();
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string key = key_of(value, i, path);
      read_value(value.value(i), out[key], ConfigPath{&path, key});
    }
  } else {
    static_assert(std::is_class_v<T> && (ListsFields<T> || std::is_aggregate_v<T>),
                  "ballast: a configuration's field is bool, a number, std::string, an enum, optional, "
                  "vector, array, tuple, map<std::string, …> or a struct of those");
    read_struct(value, out, path);
  }
}

/// JSON as it grows: a configuration may be a hundred thousand lines, as a receipt is.
class ConfigWriter {
 public:
  explicit ConfigWriter(std::string where);
  ConfigWriter(const ConfigWriter&) = delete;
  ConfigWriter& operator=(const ConfigWriter&) = delete;
  ~ConfigWriter();
  void begin(char bracket);
  void end(char bracket);
  void key(std::string_view name);
  void none();
  void truth(bool value);
  void integer(std::int64_t value);
  void integer(std::uint64_t value);
  void number(double value);
  void text(std::string_view value);
  void value(const Value& value);
  /// What was written; nothing is left here.
  [[nodiscard]] std::string take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class T>
void write_value(const T& in, ConfigWriter& out) {
  if constexpr (std::is_same_v<T, Value>) {
    out.value(in);
  } else if constexpr (std::is_enum_v<T>) {
    static constexpr auto kNames = enumerator_names<T>();
    const auto number = static_cast<std::int64_t>(in);
    const bool named = number >= 0 && number < static_cast<std::int64_t>(kNames.size()) &&
                       !kNames[static_cast<std::size_t>(number)].empty();
    if (named)
      out.text(key_of_field(kNames[static_cast<std::size_t>(number)]));
    else
      out.integer(number);
  } else if constexpr (std::is_same_v<T, bool>) {
    out.truth(in);
  } else if constexpr (std::integral<T>) {
    out.integer(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(in));
  } else if constexpr (std::floating_point<T>) {
    out.number(static_cast<double>(in));
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.text(in);
  } else if constexpr (kConfigIsA<T, std::optional>) {
    if (in)
      write_value(*in, out);
    else
      out.none();
  } else if constexpr (kConfigIsA<T, std::vector> || kConfigIsArray<T>) {
    out.begin('[');
    for (const auto& element : in) write_value<typename T::value_type>(element, out);
    out.end(']');
  } else if constexpr (kConfigIsA<T, std::tuple> || kConfigIsA<T, std::pair>) {
    out.begin('[');
    std::apply([&](const auto&... each) { (write_value(each, out), ...); }, in);
    out.end(']');
  } else if constexpr (kConfigIsA<T, std::map>) {
    out.begin('{');
    for (const auto& [key, value] : in) {
      out.key(key);
      write_value(value, out);
    }
    out.end('}');
  } else {
    out.begin('{');
    for_each_field(in, [&](std::string_view field, const auto& member) {
      out.key(field);
      write_value(member, out);
    });
    out.end('}');
  }
}

/// `where` is the place for messages.
template <class T>
[[nodiscard]] std::string config_text(const T& config, const std::string& where) {
  ConfigWriter out(where);
  write_value(config, out);
  return out.take();
}

void save_config_text(std::string text, const std::string& path, const SaveOptions& options);

}  // namespace detail

/// A struct from a value of an object tree; `where` begins the paths in messages. Errc::not_found for a field
/// that is not there and is no std::optional, type_mismatch for a value that does not fit.
template <class T>
[[nodiscard]] T read_config(const Value& value, const std::string& where = "config") {
  T config{};
  detail::read_value(value, config, detail::ConfigPath{nullptr, where});
  return config;
}

/// JSON that load_config() reads. Atomic. Errc::not_representable for numbers JSON does not have,
/// already_exists without `overwrite`, the only option it knows, and what save_text() throws.
template <class T>
void save_config(const T& config, const std::string& path, const SaveOptions& options = {}) {
  detail::save_config_text(detail::config_text(config, path), path, options);
}

}  // namespace ballast

#pragma GCC visibility pop
