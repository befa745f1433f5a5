// SPDX-License-Identifier: Apache-2.0
#include "ballast/config.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "checkpoint/file_options.h"
#include "checkpoint/value_json.h"

namespace ballast::detail {
namespace {

[[noreturn]] void does_not_fit(const Value& value, const ConfigPath& path, std::string_view wanted) {
  fail(Errc::type_mismatch, path.text(), "is {} of Python type {}, which is not {}", value.summary(),
       quoted(value.type()), wanted);
}

}  // namespace

std::string ConfigPath::text() const {
  if (parent == nullptr) return display(name);
  if (name.empty()) return fmt::format("{}[{}]", parent->text(), index);
  return fmt::format("{}.{}", parent->text(), display(name));
}

bool read_bool(const Value& value, const ConfigPath& path) {
  if (value.kind() != Kind::boolean) does_not_fit(value, path, "a bool");
  return value.as_bool();
}

std::int64_t read_signed(const Value& value, const ConfigPath& path, std::int64_t lowest,
                         std::int64_t highest) {
  if (value.kind() != Kind::integer) does_not_fit(value, path, "an integer");
  if (!value.fits_int() || value.as_int() < lowest || value.as_int() > highest) {
    does_not_fit(value, path, fmt::format("between {} and {}", lowest, highest));
  }
  return value.as_int();
}

std::uint64_t read_unsigned(const Value& value, const ConfigPath& path, std::uint64_t highest) {
  if (value.kind() != Kind::integer) does_not_fit(value, path, "an integer");
  const std::string digits = value.as_decimal();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number > highest)
    does_not_fit(value, path, fmt::format("between 0 and {}", highest));
  return number;
}

double read_float(const Value& value, const ConfigPath& path, double highest, std::int64_t highest_integer) {
  if (value.kind() == Kind::integer) {
    // Integers beyond the mantissa would be changed silently.
    if (!value.fits_int() || value.as_int() > highest_integer || value.as_int() < -highest_integer)
      does_not_fit(value, path, "exactly a floating-point number of this size");
    return static_cast<double>(value.as_int());
  }
  if (value.kind() != Kind::floating) does_not_fit(value, path, "a number");
  const double number = value.as_float();
  if (std::isfinite(number) && std::abs(number) > highest)
    does_not_fit(value, path, "in the range of the field's type");
  return number;
}

std::string read_string(const Value& value, const ConfigPath& path) {
  if (value.kind() != Kind::string) does_not_fit(value, path, "text");
  return std::string(value.as_string());
}

std::int64_t read_enum(const Value& value, const ConfigPath& path, std::string_view type,
                       const std::string_view* names, std::size_t count) {
  std::string known;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i].empty()) continue;
    if (value.kind() == Kind::string && key_of_field(names[i]) == value.as_string())
      return static_cast<std::int64_t>(i);
    if (value.kind() == Kind::integer && value.fits_int() && value.as_int() == static_cast<std::int64_t>(i))
      return static_cast<std::int64_t>(i);
    known += (known.empty() ? "" : ", ") + std::string(key_of_field(names[i]));
  }
  does_not_fit(value, path, fmt::format("one of {}'s {}", type, known));
}

void require_sequence(const Value& value, const ConfigPath& path, std::size_t size) {
  if (value.kind() != Kind::list && value.kind() != Kind::tuple && value.kind() != Kind::set)
    does_not_fit(value, path, "a list");
  if (size != kAnySize && value.size() != size)
    does_not_fit(value, path, fmt::format("of {} elements", size));
}

void require_dict(const Value& value, const ConfigPath& path) {
  if (value.kind() != Kind::dict && value.kind() != Kind::object) does_not_fit(value, path, "a dict");
}

std::string key_of(const Value& dict, std::size_t index, const ConfigPath& path) {
  const Value key = dict.key(index);
  if (key.kind() == Kind::integer) return key.as_decimal();
  if (key.kind() != Kind::string) does_not_fit(key, path, "a text key");
  return std::string(key.as_string());
}

std::optional<Value> field_of(const Value& dict, std::string_view name) {
  return dict.find(name);
}

void missing_key(const Value& dict, const ConfigPath& path) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; dict.kind() == Kind::dict && i < dict.size(); ++i) {
    if (dict.key(i).kind() == Kind::string) keys.emplace_back(dict.key(i).as_string());
  }
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  fail(Errc::not_found, path.text(), "is not in the file{}", did_you_mean(path.name, names));
}

struct ConfigWriter::State {
  JsonWriter json;
  std::string where;
};

ConfigWriter::ConfigWriter(std::string where) : state_(new State{{}, std::move(where)}) {}

ConfigWriter::~ConfigWriter() = default;

void ConfigWriter::begin(char bracket) {
  static_cast<void>(bracket == '{' ? state_->json.begin_object() : state_->json.begin_array());
}

void ConfigWriter::end(char bracket) {
  static_cast<void>(bracket == '}' ? state_->json.end_object() : state_->json.end_array());
}

void ConfigWriter::key(std::string_view name) {
  state_->json.key(name);
}

void ConfigWriter::none() {
  state_->json.null();
}

void ConfigWriter::truth(bool value) {
  state_->json.value(value);
}

void ConfigWriter::integer(std::int64_t value) {
  state_->json.value(value);
}

void ConfigWriter::integer(std::uint64_t value) {
  if (!std::in_range<std::int64_t>(value))
    fail(Errc::not_representable, display(state_->where), "{} is beyond 64 bits with a sign", value);
  state_->json.value(value);
}

void ConfigWriter::number(double value) {
  if (!std::isfinite(value)) fail(Errc::not_representable, display(state_->where), "JSON has no {}", value);
  state_->json.value(value);
}

void ConfigWriter::text(std::string_view value) {
  if (!is_utf8(value))
    fail(Errc::not_representable, display(state_->where), "{} is no UTF-8 text, which JSON is",
         quoted(value));
  state_->json.value(value);
}

void ConfigWriter::value(const Value& value) {
  write_json(state_->json, value, display(state_->where));
}

std::string ConfigWriter::take() {
  return std::move(state_->json).text();
}

void save_config_text(std::string text, const std::string& path, const SaveOptions& options) {
  require_known(options, "save_config()", {});
  text += '\n';
  save_text(text, path, options.overwrite);
}

}  // namespace ballast::detail
