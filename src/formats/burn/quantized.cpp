// SPDX-License-Identifier: Apache-2.0
#include "formats/burn/quantized.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/fail.h"
#include "tensor/cast.h"

namespace ballast::burn {
namespace {

constexpr std::uint64_t kPartBytes = 160;  // of memory, for a part of a scheme and its place in the note
constexpr std::size_t kMostParts = 32;
constexpr std::size_t kLongestPart = 64;
constexpr std::uint64_t kGlobalBytes = sizeof(float);
constexpr unsigned kWordBits = 32;

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

std::string_view said(const QuantScheme& scheme, const std::string& key) {
  const auto found = scheme.find(key);
  return found == scheme.end() ? std::string_view() : found->second;
}

using Dims = std::vector<std::int64_t>;

// What a scheme means in bytes, where that is known: values, then scales, then the scale of those.
struct QuantPlan {
  std::array<float, 256> meaning;  // of a code
  unsigned bits = 8;               // of a code
  std::size_t word = 1;            // bytes
  std::size_t in_word = 1;         // codes
  std::size_t axis = 0;            // along which codes share words; in the file it is the last one
  Dims block;                      // that has a scale of its own, by dimension; empty: all have one
  DType scale = DType::f32;
  bool has_global = false;
  std::uint64_t scales = 1;
  std::uint64_t scales_at = 0;
};

struct NamedValue {
  std::string_view name;
  unsigned bits;
  DType as;  // for codes of a byte
};

constexpr NamedValue kValues[] = {
    {"Q8S", 8, DType::i8},       {"Q8F", 8, DType::i8},       {"Q4S", 4, DType::i8},
    {"Q4F", 4, DType::i8},       {"Q2S", 2, DType::i8},       {"Q2F", 2, DType::i8},
    {"E4M3", 8, DType::f8_e4m3}, {"E5M2", 8, DType::f8_e5m2}, {"E2M1", 4, DType::f4}};

struct NamedScale {
  std::string_view name;
  DType dtype;
};

constexpr NamedScale kScales[] = {{"F32", DType::f32},
                                  {"F16", DType::f16},
                                  {"BF16", DType::bf16},
                                  {"UE4M3", DType::f8_e4m3},
                                  {"UE8M0", DType::f8_e8m0}};

std::optional<DType> scale_called(std::string_view name) {
  for (const NamedScale& row : kScales) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(value)
                                                                         : std::nullopt;
}

// Integers narrower than a byte have a sign in it where each has a byte, and none where they are packed.
std::array<float, 256> meanings(const NamedValue& value, bool is_packed) {
  std::array<std::byte, 256> codes{};
  const unsigned rest = is_packed && value.as == DType::i8 ? 8 - value.bits : 0;
  for (unsigned i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::byte>(static_cast<std::int8_t>(i << rest) >> rest);
  std::array<float, 256> all{};
  auto* out = reinterpret_cast<std::byte*>(all.data());
  if (value.as != DType::f4) {
    cast_elements(value.as, codes.data(), DType::f32, out, codes.size());
    return all;
  }
  std::array<std::byte, 8> pairs{};  // all sixteen
  for (unsigned i = 0; i < pairs.size(); ++i) pairs[i] = static_cast<std::byte>((2 * i + 1) << 4U | 2 * i);
  cast_elements(DType::f4, pairs.data(), DType::f32, out, 2 * pairs.size());
  return all;
}

// One code a byte, or words of four bytes (or of as many as the value has) along a dimension, which is
// counted from the last.
bool read_store(const QuantScheme& scheme, const NamedValue& value, std::size_t rank, QuantPlan& plan) {
  const bool is_native = says(scheme, "store", "Native");
  plan.meaning = meanings(value, !is_native);
  plan.axis = rank == 0 ? 0 : rank - 1;
  if (is_native) return true;
  const bool is_words = scheme.contains("store.PackedU32");
  const auto dim = number(said(scheme, is_words ? "store.PackedU32" : "store.PackedNative"));
  if (!dim || *dim < 0 || static_cast<std::uint64_t>(*dim) > plan.axis) return false;
  plan.axis -= static_cast<std::size_t>(*dim);
  plan.bits = value.bits;
  const std::size_t native = value.as == DType::f4 ? 2 : 1;
  plan.in_word = is_words ? kWordBits / value.bits : native;
  plan.word = is_words ? kWordBits / 8 : 1;
  return true;
}

// {"storage": [32, 1, 1, 1, 1], "len": 1} for each of `rank` dimensions: those it does not have are 1.
std::optional<Dims> block_of(const QuantScheme& scheme, const std::string& key, std::size_t rank) {
  const auto length = number(said(scheme, key + ".len"));
  if (!length || *length < 0 || static_cast<std::uint64_t>(*length) > rank) return std::nullopt;
  Dims block(rank - static_cast<std::size_t>(*length), 1);
  std::string_view text = said(scheme, key + ".storage");
  while (block.size() < rank) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto size = number(text.substr(0, comma));
    if (!size || *size < 1) return std::nullopt;
    block.push_back(*size);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return block;
}

// Up to Burn 0.21: "level" and "param". Blocks went over the values in a row there, and over rectangles
// elsewhere: taken where that is the same.
bool read_old_levels(const QuantScheme& scheme, const Dims& shape, QuantPlan& plan) {
  const auto scale = scale_called(said(scheme, "param"));
  if (!scale) return false;
  plan.scale = *scale;
  if (says(scheme, "level", "Tensor")) return true;
  const auto block = block_of(scheme, "level.Block", shape.size());
  if (!block || block->empty() || shape.back() % block->back() != 0) return false;
  plan.block = *block;
  return std::all_of(block->begin(), block->end() - 1, [](std::int64_t size) { return size == 1; });
}

// Since then: "tensor" and "block", of which either may be nil; with neither there is one F32 scale.
bool read_levels(const QuantScheme& scheme, const Dims& shape, QuantPlan& plan) {
  const auto of_all = scale_called(said(scheme, "tensor"));
  if (!of_all && !says(scheme, "tensor", "nil")) return false;
  if (says(scheme, "block", "nil")) {
    plan.scale = of_all.value_or(DType::f32);
    return true;
  }
  const auto of_block = scale_called(said(scheme, "block.dtype"));
  const auto block = block_of(scheme, "block.size", shape.size());
  if (!of_block || !block || block->empty() || (of_all && *of_all != DType::f32)) return false;
  plan.scale = *of_block;
  plan.block = *block;
  plan.has_global = of_all.has_value();
  return true;
}

std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return whole / part + (whole % part == 0 ? 0 : 1);
}

// Bytes of all values: every line along the axis fills whole words.
std::optional<std::uint64_t> bytes_of_values(Dims shape, const QuantPlan& plan) {
  if (!shape.empty()) shape[plan.axis] = parts(shape[plan.axis], static_cast<std::int64_t>(plan.in_word));
  const auto words = try_numel(shape);
  return words ? try_mul<std::uint64_t>(static_cast<std::uint64_t>(*words), plan.word) : std::nullopt;
}

bool count_scales(const Dims& shape, QuantPlan& plan) {
  Dims counts;
  for (std::size_t i = 0; i < plan.block.size(); ++i) counts.push_back(parts(shape[i], plan.block[i]));
  const auto count = try_numel(counts);  // of none: 1
  if (count) plan.scales = static_cast<std::uint64_t>(*count);
  return count.has_value();
}

// Where the scales begin, when the bytes are as many as that makes them.
bool fits(QuantPlan& plan, std::uint64_t values, DType scale, std::uint64_t bytes) {
  const std::uint64_t beside = plan.has_global ? kGlobalBytes : 0;
  const std::uint64_t size = info(scale).bits / 8;
  if (bytes < beside || bytes - beside < values) return false;
  const std::uint64_t left = bytes - beside - values;
  if (left % size != 0 || left / size != plan.scales) return false;
  plan.scale = scale;
  plan.scales_at = values;
  return true;
}

std::optional<QuantPlan> plan_of(const QuantScheme& scheme, const Dims& shape, std::uint64_t bytes) {
  const auto* value = std::find_if(std::begin(kValues), std::end(kValues),
                                   [&](const NamedValue& row) { return says(scheme, "value", row.name); });
  QuantPlan plan;
  if (value == std::end(kValues) || !says(scheme, "mode", "Symmetric") ||
      !read_store(scheme, *value, shape.size(), plan))
    return std::nullopt;
  const bool is_old = scheme.contains("param");
  if (!(is_old ? read_old_levels(scheme, shape, plan) : read_levels(scheme, shape, plan)))
    return std::nullopt;
  const auto values = bytes_of_values(shape, plan);
  if (!values || !count_scales(shape, plan)) return std::nullopt;
  if (!is_old) return fits(plan, *values, plan.scale, bytes) ? std::optional(plan) : std::nullopt;
  // Some of the old ones padded lines and some did not; F32 scales were written on CPUs, whatever they were
  // to be.
  if (plan.in_word > 1 && (shape.empty() || shape[plan.axis] % static_cast<std::int64_t>(plan.in_word) != 0))
    return std::nullopt;
  for (const DType scale : {DType::f32, plan.scale})
    if (fits(plan, *values, scale, bytes)) return plan;
  return fits(plan, (*values + 3) / 4 * 4, DType::f32, bytes) ? std::optional(plan) : std::nullopt;
}

// Steps through the lines of codes, or the grid of scales, as each dimension is stepped through: row-major,
// but that the axis of words is the last one in the file.
std::vector<std::size_t> steps_of(const Dims& counts, std::size_t axis) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!order.empty()) std::swap(order[axis], order.back());
  std::vector<std::size_t> steps(counts.size());
  std::size_t step = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    steps[order[i]] = step;
    step *= static_cast<std::size_t>(counts[order[i]]);
  }
  return steps;
}

class Decoding {
 public:
  Decoding(const Tensor& raw, Dims shape, const QuantPlan& plan)
      : plan_(plan), shape_(std::move(shape)), bytes_(static_cast<std::size_t>(raw.numel())) {
    raw.read(0, bytes_);
    if (shape_.empty()) shape_ = {1};  // one line of one
    read_scales();
    Dims words = shape_;
    words[plan.axis] = 1;
    line_steps_ = steps_of(words, plan.axis);
    line_words_ = static_cast<std::size_t>(parts(shape_[plan.axis], static_cast<std::int64_t>(plan.in_word)));
    Dims grid;
    for (std::size_t i = 0; i < shape_.size(); ++i)
      grid.push_back(plan.block.empty() ? 1 : parts(shape_[i], plan.block[i]));
    scale_steps_ = steps_of(grid, plan.axis);
  }

  void run(std::span<std::byte> out) {
    Dims at(shape_.size(), 0);
    for (std::size_t i = 0; i < out.size() / sizeof(float); ++i) {
      const float value = value_at(at);
      std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
      for (std::size_t dim = at.size(); dim-- > 0 && ++at[dim] == shape_[dim];) at[dim] = 0;
    }
  }

 private:
  void read_scales() {
    scales_.resize(static_cast<std::size_t>(plan_.scales));
    cast_elements(plan_.scale, bytes_.data() + plan_.scales_at, DType::f32,
                  reinterpret_cast<std::byte*>(scales_.data()), plan_.scales);
    if (!plan_.has_global) return;
    float global = 0;
    std::memcpy(&global, bytes_.data() + bytes_.size() - kGlobalBytes, kGlobalBytes);
    for (float& scale : scales_) scale = global * scale;
  }

  [[nodiscard]] float value_at(const Dims& at) const {
    std::size_t line = 0;
    std::size_t scale = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (i != plan_.axis) line += static_cast<std::size_t>(at[i]) * line_steps_[i];
      if (!plan_.block.empty()) scale += static_cast<std::size_t>(at[i] / plan_.block[i]) * scale_steps_[i];
    }
    const auto k = static_cast<std::size_t>(at[plan_.axis]);
    const std::size_t word = line * line_words_ + k / plan_.in_word;
    const std::size_t bit = k % plan_.in_word * plan_.bits;  // bytes of a word: the lowest first
    const unsigned held = std::to_integer<unsigned>(bytes_[word * plan_.word + bit / 8]) >> (bit % 8);
    return scales_[scale] * plan_.meaning[held & ((1U << plan_.bits) - 1)];
  }

  const QuantPlan& plan_;
  Dims shape_;
  std::vector<std::byte> bytes_;
  std::vector<float> scales_;
  std::vector<std::size_t> line_steps_;
  std::vector<std::size_t> scale_steps_;
  std::size_t line_words_ = 0;
};

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
  const auto plan = numel ? plan_of(scheme, shape, static_cast<std::uint64_t>(raw.numel())) : std::nullopt;
  notes.push_back(fmt::format("tensor {} {} is quantized by Burn ({}); {}", quoted(tensor), to_string(shape),
                              text_of(scheme),
                              plan ? "it is read as F32" : "its bytes, integers and scales, are read as U8"));
  if (!plan) return raw;
  const auto storage = Storage::deferred(
      static_cast<std::uint64_t>(*numel) * sizeof(float),
      [raw, shape, plan = *plan](std::span<std::byte> out) { Decoding(raw, shape, plan).run(out); },
      {raw.storage()});
  return Tensor::contiguous_view(DType::f32, shape, storage);
}

}  // namespace ballast::burn
