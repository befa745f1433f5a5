// SPDX-License-Identifier: Apache-2.0
#include "formats/burn/parts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
#include "formats/burn/msgpack.h"
#include "formats/instead_of.h"

namespace ballast::burn {
namespace {

constexpr std::string_view kIdsKey = "burn.param_ids";
constexpr std::string_view kScalarsKey = "burn.scalars";
constexpr std::string_view kKindsKey = "burn.dtypes";
constexpr std::string_view kBase32 = "0123456789abcdefghijklmnopqrstuv";
constexpr std::size_t kIdText = 13;  // 64 bits in fives
constexpr std::size_t kMaxRank = 64;

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr std::array<NamedDType, 16> kDTypes = {{
    {"F64", DType::f64},
    {"F32", DType::f32},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"I64", DType::i64},
    {"I32", DType::i32},
    {"I16", DType::i16},
    {"I8", DType::i8},
    {"U64", DType::u64},
    {"U32", DType::u32},
    {"U16", DType::u16},
    {"U8", DType::u8},
    {"Bool", DType::boolean},
    // Read only: what Burn computes with in fewer bits lies in a file as F32; complex ones are not in a
    // release.
    {"Flex32", DType::f32},
    {"Complex32", DType::c64},
    {"Complex64", DType::c128},
}};
constexpr std::size_t kWritten = 13;

// JSON that put() wrote, or somebody else.
template <class Member>
void read_object(std::string text, const std::string& where, Member&& member) {
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8");
  const std::size_t size = text.size();
  text.resize(size + JsonScanner::kPadding, '\0');
  JsonScanner json({text.data(), size}, where);
  json.object([&](std::string_view key) { member(json, key); });
  json.finish();
}

Scalar read_scalar(JsonScanner& json) {
  std::optional<Scalar> scalar;
  json.object([&](std::string_view key) {
    const auto type = scalar_type_from_name(key);
    if (!type || scalar) fail(Errc::bad_json, json.where(), "{} is no type of a scalar", quoted(key));
    // Numbers as text: JSON has neither NaN nor 64-bit integers for everybody.
    const std::string_view text = json.string();
    const char* end = text.data() + text.size();
    std::from_chars_result result{text.data(), std::errc::invalid_argument};
    scalar = Scalar{*type, 0};
    if (*type == Scalar::Type::Float) {
      double value = 0;
      result = std::from_chars(text.data(), end, value);
      scalar->bits = std::bit_cast<std::uint64_t>(value);
    } else if (*type == Scalar::Type::Int) {
      std::int64_t value = 0;
      result = std::from_chars(text.data(), end, value);
      scalar->bits = static_cast<std::uint64_t>(value);
    } else {
      result = std::from_chars(text.data(), end, scalar->bits);
    }
    const bool is_truth = *type != Scalar::Type::Bool || scalar->bits <= 1;
    if (result.ec != std::errc() || result.ptr != end || !is_truth)
      fail(Errc::bad_json, json.where(), "{} is no {}", quoted(text), key);
  });
  if (!scalar) fail(Errc::bad_json, json.where(), "a scalar without a value");
  return *scalar;
}

std::string text_of(const Scalar& scalar) {
  if (scalar.type == Scalar::Type::Float) {
    std::array<char, 64> text{};
    const auto result =
        std::to_chars(text.data(), text.data() + text.size(), std::bit_cast<double>(scalar.bits));
    return {text.data(), result.ptr};
  }
  if (scalar.type == Scalar::Type::Int) return std::to_string(static_cast<std::int64_t>(scalar.bits));
  return std::to_string(scalar.bits);
}

std::string take_key(Metadata& metadata, std::string_view key) {
  const auto found = metadata.find(std::string(key));
  if (found == metadata.end()) return {};
  std::string text = std::move(found->second);
  metadata.erase(found);
  return text;
}

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const NamedDType& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

bool is_written(DType dtype) noexcept {
  const auto written = std::span(kDTypes).first(kWritten);
  return std::any_of(written.begin(), written.end(),
                     [&](const NamedDType& row) { return row.dtype == dtype; });
}

std::string_view name_of(DType dtype, std::string_view tensor, const std::string& where) {
  for (const NamedDType& row : std::span(kDTypes).first(kWritten)) {
    if (row.dtype == dtype) return row.name;
  }
  fail(Errc::not_representable, where, "tensor {} is {}, which Burn does not have{}", quoted(tensor),
       info(dtype).code, instead_of(dtype));
}

void require_readable(std::string_view name, std::size_t rank, const std::string& where) {
  if (rank > kMaxRank)
    fail(Errc::not_representable, where, "tensor {} has {} dimensions, at most {} are read again",
         quoted(name), rank, kMaxRank);
  if (name.size() > kLongestText)
    fail(Errc::not_representable, where, "tensor {} has a name of {} bytes, at most {} are read again",
         quoted(name), name.size(), kLongestText);
}

DType dtype_from_variant(std::string_view variant, std::string_view store, std::string_view tensor,
                         const std::string& where, std::vector<std::string>& notes, Extras& extras) {
  if (variant == "Bool" && store == "U32") {
    notes.push_back(fmt::format("tensor {} holds booleans in 32 bits each, read as U32", quoted(tensor)));
    extras.kinds.emplace(tensor, store);
    return DType::u32;
  }
  const auto dtype = dtype_from_name(variant);
  if (variant == "Flex32") extras.kinds.emplace(tensor, variant);
  if (variant == "Bool" && store == "U8") extras.kinds.emplace(tensor, store);
  if (dtype && (store.empty() || (variant == "Bool" && (store == "Native" || store == "U8")))) return *dtype;
  fail(Errc::bad_dtype, where, "tensor {}: no dtype {}{}{}", quoted(tensor), quoted(variant),
       store.empty() ? "" : " of ", store.empty() ? "" : quoted(store));
}

void check_size(DType dtype, ShapeView shape, std::uint64_t bytes, std::string_view tensor,
                const std::string& where) {
  const auto numel = try_numel(shape);
  const auto needed =
      numel ? try_mul<std::uint64_t>(static_cast<std::uint64_t>(*numel), info(dtype).bits / 8) : std::nullopt;
  if (!needed)
    fail(Errc::size_overflow, where, "tensor {}: the size of {} does not fit into 64 bits", quoted(tensor),
         to_string(shape));
  if (*needed != bytes) {
    fail(Errc::size_mismatch, where, "tensor {}: {} {} needs {} bytes, {} are there", quoted(tensor),
         info(dtype).code, to_string(shape), *needed, bytes);
  }
}

std::vector<std::int64_t> checked_shape(const std::vector<std::uint64_t>& dims, std::string_view tensor,
                                        const std::string& where) {
  if (dims.size() > kMaxRank)
    fail(Errc::too_many, where, "tensor {} has {} dimensions, at most {} are read", quoted(tensor),
         dims.size(), kMaxRank);
  std::vector<std::int64_t> shape;
  for (const std::uint64_t dim : dims) {
    if (dim > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail(Errc::size_overflow, where, "tensor {} has a dimension of {}", quoted(tensor), dim);
    shape.push_back(static_cast<std::int64_t>(dim));
  }
  return shape;
}

// Five bits a character from the first bit on; the last one is filled up with a zero.
std::string encode_id(std::uint64_t id) {
  std::string text;
  unsigned bits = 0;
  unsigned held = 0;
  for (unsigned i = 0; i < 8; ++i) {
    held = held << 8U | static_cast<unsigned>(id >> (8 * i) & 0xFFU);
    for (bits += 8; bits >= 5; bits -= 5) text += kBase32[held >> (bits - 5) & 0x1FU];
  }
  return text += kBase32[held << (5 - bits) & 0x1FU];
}

ParamId decode_id(const std::string& text) {
  if (text.size() != kIdText) return text;
  std::uint64_t id = 0;
  unsigned held = 0;
  unsigned bits = 0;
  unsigned byte = 0;
  for (const char c : text) {
    const std::size_t value = kBase32.find(c);
    if (value == std::string_view::npos) return text;
    held = held << 5U | static_cast<unsigned>(value);
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    id |= static_cast<std::uint64_t>(held >> bits & 0xFFU) << (8 * byte++);
  }
  return id;
}

// FNV-1a: any hash that never changes will do.
std::uint64_t id_for(std::string_view name) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

std::string_view name_of(Scalar::Type type) noexcept {
  switch (type) {
    case Scalar::Type::Int:
      return "Int";
    case Scalar::Type::UInt:
      return "UInt";
    case Scalar::Type::Float:
      return "Float";
    case Scalar::Type::Bool:
      return "Bool";
  }
  return "";
}

std::optional<Scalar::Type> scalar_type_from_name(std::string_view name) noexcept {
  for (const auto type : {Scalar::Type::Int, Scalar::Type::UInt, Scalar::Type::Float, Scalar::Type::Bool}) {
    if (name_of(type) == name) return type;
  }
  return std::nullopt;
}

void Extras::put(std::optional<Metadata>& metadata) const {
  if (ids.empty() && scalars.empty() && kinds.empty()) return;
  if (!metadata) metadata.emplace();
  if (!ids.empty()) {
    JsonWriter json;
    json.begin_object();
    for (const auto& [name, id] : ids) {
      json.key(name);
      if (const auto* number = std::get_if<std::uint64_t>(&id))
        json.value(*number);
      else
        json.value(std::get<std::string>(id));
    }
    (*metadata)[std::string(kIdsKey)] = std::move(json.end_object()).text();
  }
  if (!kinds.empty()) {
    JsonWriter json;
    json.begin_object();
    for (const auto& [name, kind] : kinds) json.member(name, kind);
    (*metadata)[std::string(kKindsKey)] = std::move(json.end_object()).text();
  }
  if (!scalars.empty()) {
    JsonWriter json;
    json.begin_object();
    for (const auto& [name, scalar] : scalars)
      json.key(name).begin_object().member(name_of(scalar.type), text_of(scalar)).end_object();
    (*metadata)[std::string(kScalarsKey)] = std::move(json.end_object()).text();
  }
}

Extras Extras::take(Metadata& metadata, const std::string& where) {
  Extras extras;
  if (std::string text = take_key(metadata, kIdsKey); !text.empty()) {
    read_object(std::move(text), where + ": metadata " + std::string(kIdsKey),
                [&](JsonScanner& json, std::string_view name) {
                  if (json.peek() == JsonScanner::Kind::string) {
                    extras.ids.insert_or_assign(std::string(name), std::string(json.string()));
                    return;
                  }
                  const JsonScanner::Number number = json.number();
                  if (!number.is_unsigned)
                    fail(Errc::bad_json, json.where(), "{} is no id of a parameter", quoted(number.text));
                  extras.ids.insert_or_assign(std::string(name), number.value);
                });
  }
  if (std::string text = take_key(metadata, kKindsKey); !text.empty()) {
    read_object(std::move(text), where + ": metadata " + std::string(kKindsKey),
                [&](JsonScanner& json, std::string_view name) {
                  std::string key(name);
                  extras.kinds.insert_or_assign(std::move(key), std::string(json.string()));
                });
  }
  if (std::string text = take_key(metadata, kScalarsKey); !text.empty()) {
    read_object(std::move(text), where + ": metadata " + std::string(kScalarsKey),
                [&](JsonScanner& json, std::string_view name) {
                  std::string key(name);
                  extras.scalars.insert_or_assign(std::move(key), read_scalar(json));
                });
  }
  return extras;
}

BurnVersion::BurnVersion(const std::string& text) {
  if (text.empty()) return;
  const bool has_dot = text.starts_with("0.");
  const char* begin = text.data() + (has_dot ? 2 : 0);
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(begin, end, minor);
  if (!has_dot || result.ec != std::errc() || (result.ptr != end && *result.ptr != '.') || minor < 14)
    fail(Errc::invalid_argument, "burn", "{} is no release of Burn whose files are written (0.14 and later)",
         quoted(text));
}

WrittenDType written_dtype(const Entry& entry, const Extras& extras, BurnVersion version,
                           const std::string& where) {
  const std::string_view name = name_of(entry.dtype, entry.name, where);
  const auto found = extras.kinds.find(entry.name);
  const std::string_view kind = found == extras.kinds.end() ? std::string_view() : found->second;
  if (entry.dtype == DType::f32 && kind == "Flex32") return {kind, {}};
  if (version.minor < BurnVersion::kBoolHasStore) return {name, {}};
  if (entry.dtype == DType::boolean) return {name, kind == "U8" ? "U8" : "Native"};
  if (entry.dtype == DType::u32 && kind == "U32") return {"Bool", "U32"};
  return {name, {}};
}

}  // namespace ballast::burn
