// SPDX-License-Identifier: Apache-2.0
#include "formats/burn/quantized.h"

#include <cstring>

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast::burn {
namespace {

constexpr std::uint64_t kPartBytes = 160;  // of memory, for a part of a scheme and its place in the note
constexpr std::size_t kMostParts = 32;
constexpr std::size_t kLongestPart = 64;
constexpr std::size_t kScaleBytes = 4;
constexpr std::int64_t kPackedInU32 = 4;

std::string text_of(const QuantScheme& scheme) {
  std::string text;
  for (const auto& [key, value] : scheme)
    text += (text.empty() ? "" : ", ") + display(key) + " " + display(value);
  return text;
}

bool says(const QuantScheme& scheme, const std::string& key, std::string_view value) {
  const auto found = scheme.find(key);
  return found != scheme.end() && found->second == value;
}

// One F32 scale: "level" and "param" up to Burn 0.21, "tensor" and no "block" since; neither of both means an
// F32 scale, too, and is what Burn writes unless asked for more.
bool has_one_scale(const QuantScheme& scheme) {
  const bool is_old = says(scheme, "level", "Tensor") && says(scheme, "param", "F32");
  const bool is_f32 = says(scheme, "tensor", "F32") || says(scheme, "tensor", "nil");
  return is_old || (is_f32 && says(scheme, "block", "nil"));
}

bool is_known(const QuantScheme& scheme, const std::vector<std::int64_t>& shape, std::int64_t numel,
              std::uint64_t bytes) {
  if (!says(scheme, "mode", "Symmetric") || !has_one_scale(scheme)) return false;
  if (!says(scheme, "value", "Q8S") && !says(scheme, "value", "Q8F")) return false;
  const bool is_packed = says(scheme, "store.PackedU32", "0");
  // Rows are padded to whole words, each.
  if (is_packed && (shape.empty() || shape.back() % kPackedInU32 != 0)) return false;
  if (!is_packed && !says(scheme, "store", "Native")) return false;
  const auto count = static_cast<std::uint64_t>(numel);
  return bytes == count + kScaleBytes || bytes == (count + 3) / 4 * 4 + kScaleBytes;
}

void compute(const Tensor& raw, std::span<std::byte> out) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(raw.numel()));
  raw.read(0, bytes);
  float scale = 0;
  std::memcpy(&scale, bytes.data() + bytes.size() - kScaleBytes, kScaleBytes);
  for (std::size_t i = 0; i < out.size() / sizeof(float); ++i) {
    const float value = static_cast<float>(std::to_integer<std::int8_t>(bytes[i])) * scale;
    std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

void put(QuantScheme& scheme, const std::string& path, std::string_view value, const std::string& where,
         Budget& budget) {
  if (scheme.size() >= kMostParts || path.size() > kLongestPart || value.size() > kLongestPart)
    fail(Errc::bad_burn, where, "a dtype with a scheme of more than {} parts, or one of more than {} bytes",
         kMostParts, kLongestPart);
  budget.take(kPartBytes + 2 * (path.size() + value.size()));
  if (!scheme.emplace(path, value).second)
    fail(Errc::duplicate_key, where, "a scheme that says {} twice", quoted(path));
}

Tensor read_quantized(const QuantScheme& scheme, const Tensor& raw, const std::vector<std::int64_t>& shape,
                      std::string_view tensor, std::vector<std::string>& notes) {
  const auto numel = try_numel(shape);
  const bool known = numel && is_known(scheme, shape, *numel, static_cast<std::uint64_t>(raw.numel()));
  notes.push_back(fmt::format(
      "tensor {} {} is quantized by Burn ({}); {}", quoted(tensor), to_string(shape), text_of(scheme),
      known ? "it is read as F32" : "its bytes, integers and scales, are read as U8"));
  if (!known) return raw;
  const auto storage =
      Storage::deferred(static_cast<std::uint64_t>(*numel) * sizeof(float),
                        [raw](std::span<std::byte> out) { compute(raw, out); }, {raw.storage()});
  return Tensor::contiguous_view(DType::f32, shape, storage);
}

}  // namespace ballast::burn
