// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/packed.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/hash_xxh3.h"
#include "base/json_writer.h"
#include "checkpoint/value_json.h"
#include "containers/expansion.h"
#include "containers/packed_planes.h"

namespace ballast::safetensors {
namespace {

constexpr std::string_view kVersion = "1";

const std::string_view* value_of(const Header& header, std::string_view key) {
  if (!header.metadata) return nullptr;
  for (const auto& entry : *header.metadata)
    if (entry.first == key) return &entry.second;
  return nullptr;
}

Value member(const Value& object, std::string_view key, ballast::Kind kind, const std::string& where) {
  std::optional<Value> found = object.kind() == ballast::Kind::dict ? object.find(key) : std::nullopt;
  if (!found || found->kind() != kind) fail(Errc::bad_json, where, "has no {} as it should be", key);
  return *std::move(found);
}

std::uint64_t checksum_in(std::string_view text, const std::string& where) {
  std::uint64_t sum = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size() || hex(sum) != text)
    fail(Errc::bad_json, where, "xxh3 is not 16 hexadecimal digits");
  return sum;
}

PackedTensor tensor_in(const Value& said, const std::string& where) {
  PackedTensor tensor;
  const Value named = member(said, "dtype", ballast::Kind::string, where);
  const std::string_view code = named.as_string();
  const auto dtype = dtype_from_code(code);
  if (!dtype || !packed::split_of(*dtype)) fail(Errc::bad_dtype, where, "{} is not packed", quoted(code));
  tensor.dtype = *dtype;
  const Value shape = member(said, "shape", ballast::Kind::list, where);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Value dim = shape.element(i);
    if (dim.kind() != ballast::Kind::integer || !dim.fits_int() || dim.as_int() < 0)
      fail(Errc::bad_json, where, "dimension {} is no size", i);
    tensor.shape.push_back(static_cast<std::uint64_t>(dim.as_int()));
  }
  tensor.xxh3 = checksum_in(member(said, "xxh3", ballast::Kind::string, where).as_string(), where);
  return tensor;
}

}  // namespace

PackedTensors::PackedTensors(const Header& header, const std::string& file) {
  const std::string_view* text = value_of(header, kPackedKey);
  const std::string_view* version = value_of(header, kPackedVersionKey);
  if (text == nullptr && version == nullptr) return;
  if (version == nullptr || *version != kVersion)
    fail(Errc::unsupported, file, "is packed in version {}, this Ballast reads {}",
         version == nullptr ? "none" : quoted(*version), kVersion);
  if (text == nullptr) fail(Errc::bad_packed, file, "has no metadata {}", quoted(kPackedKey));
  const std::string in_metadata = file + ": metadata " + quoted(kPackedKey);
  const Value object = parse_json(*text, in_metadata);
  if (object.kind() != ballast::Kind::dict) fail(Errc::bad_json, in_metadata, "is no object");
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string name(object.key(i).as_string());
    tensors_.emplace(name, tensor_in(object.value(i), in_metadata + ": " + quoted(name)));
  }
  std::size_t found = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stored = 0;
  for (const HeaderEntry& entry : header.tensors) {
    const PackedTensor* tensor = find(entry.name());
    if (tensor == nullptr) continue;
    ++found;
    const std::string where = file + ": packed tensor " + quoted(entry.name());
    if (entry.dtype != DType::u8 || entry.rank != 1)
      fail(Errc::bad_packed, where, "its bytes are not U8 in one dimension");
    const std::uint64_t size = data_size(tensor->dtype, tensor->shape, file, entry.name());
    // Of no elements nobody would ever ask for a byte, and what is stored would be looked at by nobody.
    if (size == 0) fail(Errc::bad_packed, where, "has no elements by its shape; such tensors are not packed");
    bytes = checked_add(bytes, size, where);
    stored += entry.end - entry.begin;
    // Before anything of this size is asked for.
    if (bytes > containers::expansion_limit(stored))
      fail(Errc::expansion_limit, where,
           "{} bytes of the file up to here would unpack to {} (made to exhaust its reader?)", stored, bytes);
  }
  if (found == tensors_.size()) return;
  std::set<std::string_view> names;
  for (const HeaderEntry& entry : header.tensors) names.insert(entry.name());
  for (const auto& [name, tensor] : tensors_) {
    if (!names.contains(name))
      fail(Errc::bad_packed, in_metadata, "speaks of tensor {}, which is not in the file", quoted(name));
  }
}

const PackedTensor* PackedTensors::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void PackedTensors::write(std::optional<Metadata>& metadata) const {
  if (empty()) return;
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, tensor] : tensors_) {
    json.key(name).begin_object().member("dtype", info(tensor.dtype).code).key("shape").begin_array();
    for (const std::uint64_t dim : tensor.shape) json.value(dim);
    json.end_array().member("xxh3", hex(tensor.xxh3)).end_object();
  }
  json.end_object();
  if (!metadata) metadata.emplace();
  (*metadata)[kPackedKey] = std::move(json).text();
  (*metadata)[kPackedVersionKey] = kVersion;
}

bool says_packed(const Header& header) {
  return value_of(header, kPackedKey) != nullptr;
}

void remove_packed_keys(std::optional<Metadata>& metadata) {
  if (!metadata || !metadata->contains(kPackedKey)) return;
  metadata->erase(kPackedKey);
  metadata->erase(kPackedVersionKey);
  if (metadata->empty()) metadata.reset();
}

std::string packed_note(const Checkpoint& checkpoint) {
  std::uint64_t count = 0;
  std::uint64_t stored = 0;
  std::uint64_t bytes = 0;
  for (const Entry& entry : checkpoint) {
    const auto packed = entry.tensor().storage()->packed_size();
    if (!packed) continue;
    ++count;
    stored += *packed;
    bytes += entry.bytes;
  }
  if (count == 0) return {};
  return fmt::format("{} of {} tensors are packed: {} bytes in the file for {}", count, checkpoint.size(),
                     stored, bytes);
}

std::string foreign_packing(const Header& header) {
  if (value_of(header, "znn_compressed_vectors") != nullptr)
    return "compressed with ZipNN: tensors of type U8 are its bytes and no weights, and Ballast does not "
           "unpack "
           "them";
  constexpr std::array<std::string_view, 5> kDFloat11 = {".encoded_exponent", ".sign_mantissa", ".luts",
                                                         ".output_positions", ".gaps"};
  const bool all = std::all_of(kDFloat11.begin(), kDFloat11.end(), [&](std::string_view suffix) {
    return std::any_of(header.tensors.begin(), header.tensors.end(), [&](const HeaderEntry& entry) {
      return entry.name().ends_with(suffix) || entry.name() == suffix.substr(1);
    });
  });
  if (all)
    return "compressed with DFloat11: encoded_exponent, sign_mantissa and luts are its bytes and no weights, "
           "and "
           "Ballast does not unpack them";
  return {};
}

}  // namespace ballast::safetensors
