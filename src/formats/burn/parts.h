// SPDX-License-Identifier: Apache-2.0
// What both of Burn's formats are made of besides tensors: names of dtypes, parameter ids, typed scalars. A
// Checkpoint has no place of its own for the last two, so they travel in its metadata, as JSON under two
// keys, and come out again on the other side, whatever formats lie between.
//
//   burn.param_ids  {"fc.weight": 42, "old.weight": "b3d1…"}   numbers; UUIDs of Burn before 0.15 as text
//   burn.dtypes     {"mask": "U8", "x": "Flex32"}   of Burn's dtypes that are one of ours: Bool(U8),
//   Bool(U32) burn.scalars    {"step": {"UInt": 7}, "lr": {"Float": 0.1}}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ballast/checkpoint.h"

namespace ballast::burn {

/// "F32" → DType::f32; nullopt for what Ballast has no dtype for.
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Whether Burn has the dtype.
[[nodiscard]] bool is_written(DType dtype) noexcept;
/// Errc::not_representable, naming the tensor, for dtypes Burn lacks.
[[nodiscard]] std::string_view name_of(DType dtype, std::string_view tensor, const std::string& where);
/// Refuses to write a tensor that the reader would refuse.
void require_readable(std::string_view name, std::size_t rank, const std::string& where);

/// The size a tensor must have, checked against the one it has. Errc::size_overflow, Errc::size_mismatch.
void check_size(DType dtype, ShapeView shape, std::uint64_t bytes, std::string_view tensor,
                const std::string& where);
/// Errc::size_overflow, Errc::too_many.
[[nodiscard]] std::vector<std::int64_t> checked_shape(const std::vector<std::uint64_t>& dims,
                                                      std::string_view tensor, const std::string& where);

/// Metadata: what an .mpk says of configuration, which is how the model is built and no value:
/// {"gru.gate_activation": {"Sigmoid": null}, "conv.stride": [null, null]}. Only an .mpk has a place for it.
inline constexpr const char* kConfigurationKey = "burn.configuration";

/// What opening spends on one key of metadata beside its text, and on the name of a tensor or a scalar: it
/// lies in the checkpoint, in Extras and, while that is written, twice in its JSON.
inline constexpr std::uint64_t kMetadataEntryBytes = 160;

[[nodiscard]] constexpr std::uint64_t bytes_of_name(std::uint64_t size) {
  return 4 * size + 300;
}

using ParamId = std::variant<std::uint64_t, std::string>;

/// Burn writes an id as the base32 (RFC 4648's "extended hex", lower case) of its eight bytes.
[[nodiscard]] std::string encode_id(std::uint64_t id);
/// The text itself when it is none of these: a UUID.
[[nodiscard]] ParamId decode_id(const std::string& text);
/// An id for a parameter that has none: the same for the same name.
[[nodiscard]] std::uint64_t id_for(std::string_view name) noexcept;

struct Scalar {
  // NOLINTNEXTLINE(readability-identifier-naming): the words of the file
  enum class Type : std::uint8_t { Int, UInt, Float, Bool };
  Type type;
  std::uint64_t bits;  // two's complement, or those of a double

  friend bool operator==(const Scalar&, const Scalar&) = default;
};

[[nodiscard]] std::string_view name_of(Scalar::Type type) noexcept;
[[nodiscard]] std::optional<Scalar::Type> scalar_type_from_name(std::string_view name) noexcept;

struct Extras {
  std::map<std::string, ParamId, std::less<>> ids;
  std::map<std::string, std::string, std::less<>> kinds;  // "Flex32", "U8", "U32": below
  std::map<std::string, Scalar, std::less<>> scalars;

  /// Into metadata; nothing when there is nothing.
  void put(std::optional<Metadata>& metadata) const;
  /// Out of it. Errc::bad_json, naming the key, when it is not what put() writes.
  static Extras take(Metadata& metadata, const std::string& where);
};

/// A dtype with a parameter: {"Bool": "Native"}, {"QFloat": …}. Fails for those Ballast does not read; says
/// in `notes` what it reads as something else, and in `extras` what it was.
[[nodiscard]] DType dtype_from_variant(std::string_view variant, std::string_view store,
                                       std::string_view tensor, const std::string& where,
                                       std::vector<std::string>& notes, Extras& extras);

/// A release of Burn, as SaveOptions::burn says it; the newest when it is empty. Errc::invalid_argument.
struct BurnVersion {
  int minor = kNewest;

  static constexpr int kNewest = 22;
  static constexpr int kBoolHasStore = 21;  // {"Bool": "Native"}; "Bool" before
  explicit BurnVersion(const std::string& text);
};

/// How a file says a dtype: a name, or a map of one {variant: store}.
struct WrittenDType {
  std::string_view name;
  std::string_view store;  // empty: the name alone
};

/// Errc::not_representable, naming the tensor, for dtypes Burn lacks.
[[nodiscard]] WrittenDType written_dtype(const Entry& entry, const Extras& extras, BurnVersion version,
                                         const std::string& where);

}  // namespace ballast::burn
