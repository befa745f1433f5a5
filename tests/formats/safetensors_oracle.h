// SPDX-License-Identifier: Apache-2.0
// The reference's verdict computed a second time, from simdjson's tree: to compare ours with on inputs nobody
// wrote down. Where simdjson is stricter than the reference (integers beyond 64 bits, numbers near the end of
// double's range), or hides something (-0 reads as 0), it answers `unknown`.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/dtype.h"
#include "ballast/safetensors.h"

namespace ballast::safetensors::oracle {

enum class Verdict : std::uint8_t { accept, refuse, unknown };

struct Info {
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const Info&, const Info&) = default;
};

struct Result {
  Verdict verdict = Verdict::refuse;
  std::map<std::string, Info, std::less<>> tensors = {};
  std::optional<std::map<std::string, std::string>> metadata = {};
};

using Element = simdjson::dom::element;

inline int depth_of(Element element) {
  int deepest = 0;
  if (element.is_array()) {
    for (const Element child : element.get_array()) deepest = std::max(deepest, depth_of(child));
    return deepest + 1;
  }
  if (element.is_object()) {
    for (const auto field : element.get_object()) deepest = std::max(deepest, depth_of(field.value));
    return deepest + 1;
  }
  return 0;
}

inline std::optional<DType> dtype_of(Element element) {
  std::string_view code;
  if (element.is_object()) {
    const simdjson::dom::object object = element.get_object();
    if (object.size() != 1 || !(*object.begin()).value.is_null()) return std::nullopt;
    code = (*object.begin()).key;
  } else if (element.get_string().get(code) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const auto found = dtype_from_code(code);
  return found && info(*found).in_safetensors ? found : std::nullopt;
}

inline std::optional<std::vector<std::uint64_t>> whole_numbers(Element element) {
  if (!element.is_array()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const Element child : element.get_array()) {
    if (child.type() == simdjson::dom::element_type::INT64 && std::int64_t(child) < 0) return std::nullopt;
    std::uint64_t number = 0;
    if (child.get_uint64().get(number) != simdjson::SUCCESS) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

inline std::optional<Info> info_of(Element element) {
  std::vector<std::optional<Element>> fields(3);
  if (element.is_array()) {
    const simdjson::dom::array array = element.get_array();
    if (array.size() != 3) return std::nullopt;
    std::copy(array.begin(), array.end(), fields.begin());
  } else if (element.is_object()) {
    for (const auto field : element.get_object()) {
      const std::size_t which = field.key == "dtype"          ? 0
                                : field.key == "shape"        ? 1
                                : field.key == "data_offsets" ? 2
                                                              : 3;
      if (which == 3) continue;
      if (fields[which]) return std::nullopt;
      fields[which] = field.value;
    }
  }
  if (!fields[0] || !fields[1] || !fields[2]) return std::nullopt;
  const auto dtype = dtype_of(*fields[0]);
  const auto shape = whole_numbers(*fields[1]);
  const auto offsets = whole_numbers(*fields[2]);
  if (!dtype || !shape || !offsets || offsets->size() != 2) return std::nullopt;
  return Info{*dtype, *shape, (*offsets)[0], (*offsets)[1]};
}

// Bytes, or nothing when the reference refuses.
inline std::optional<std::uint64_t> bytes_of(const Info& tensor) {
  __extension__ typedef unsigned __int128 Wide;
  constexpr Wide kLargest = ~std::uint64_t{0};
  Wide product = 1;
  for (const std::uint64_t dim : tensor.shape) {
    product *= dim;
    if (product > kLargest) return std::nullopt;
  }
  product *= info(tensor.dtype).bits;
  if (product > kLargest || product % 8 != 0) return std::nullopt;
  return static_cast<std::uint64_t>(product / 8);
}

inline bool cover(const std::map<std::string, Info, std::less<>>& tensors, std::uint64_t data_size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.end < tensor.begin || bytes_of(tensor) != tensor.end - tensor.begin) return false;
    ranges.emplace_back(tensor.begin, tensor.end);
  }
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t expected = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != expected) return false;
    expected = end;
  }
  return expected == data_size;
}

inline bool read_metadata(Element element, Result& result) {
  if (element.is_null()) return true;
  if (!element.is_object()) return false;
  result.metadata.emplace();
  for (const auto field : element.get_object()) {
    std::string_view value;
    if (field.value.get_string().get(value) != simdjson::SUCCESS) return false;
    (*result.metadata)[std::string(field.key)] = value;
  }
  return true;
}

inline Result read(std::string_view file) {
  std::uint64_t length = 0;
  if (file.size() < 8) return {};
  std::memcpy(&length, file.data(), 8);
  if (length > 100'000'000 || length > file.size() - 8) return {};
  const std::string_view text = file.substr(8, length);
  if (text.starts_with("\xEF\xBB\xBF")) return {};
  static thread_local simdjson::dom::parser parser;  // its memory is used again
  Element root;
  const auto error = parser.parse(text.data(), text.size()).get(root);
  if (error == simdjson::NUMBER_ERROR || error == simdjson::DEPTH_ERROR || error == simdjson::CAPACITY)
    return {Verdict::unknown};
  if (error != simdjson::SUCCESS || !root.is_object() || depth_of(root) > 127) return {};
  Result result;
  bool metadata_seen = false;
  for (const auto field : root.get_object()) {
    if (field.key == "__metadata__") {
      if (std::exchange(metadata_seen, true) || !read_metadata(field.value, result)) return {};
      continue;
    }
    const auto tensor = info_of(field.value);
    if (!tensor) return {};
    result.tensors[std::string(field.key)] = *tensor;
  }
  if (text.find("-0") != std::string_view::npos) return {Verdict::unknown};
  result.verdict = cover(result.tensors, file.size() - 8 - length) ? Verdict::accept : Verdict::refuse;
  return result;
}

}  // namespace ballast::safetensors::oracle
