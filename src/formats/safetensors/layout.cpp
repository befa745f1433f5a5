// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
#include "formats/instead_of.h"
#include "formats/safetensors/header.h"

namespace ballast::safetensors {
namespace {

// What the data section begins on.
constexpr std::size_t alignment_of(Arrangement arrangement) {
  return arrangement == Arrangement::aligned ? 64 : 8;
}

void check_name(std::string_view name, const std::string& where) {
  if (name == "__metadata__")
    fail(Errc::bad_name, where, "a tensor cannot be called \"__metadata__\": no reader could open the file");
  if (name.find('\0') != std::string_view::npos)
    fail(Errc::bad_name, where, "tensor name {} has a NUL in it", quoted(name));
  if (!is_utf8(name)) fail(Errc::bad_utf8, where, "tensor name {} is not UTF-8", quoted(name));
}

void check_unique(std::span<const HeaderLine> lines, const std::string& where) {
  std::vector<std::string_view> names;
  names.reserve(lines.size());
  for (const HeaderLine& line : lines) names.push_back(line.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail(Errc::duplicate_key, where, "two tensors are called {}", quoted(*twice));
}

std::vector<std::uint64_t> unsigned_dims(ShapeView shape, const std::string& where, std::string_view name) {
  std::vector<std::uint64_t> dims;
  for (const std::int64_t dim : shape) {
    if (dim < 0)
      fail(Errc::invalid_argument, where, "tensor {}: dimension {} is negative", quoted(name), dim);
    dims.push_back(static_cast<std::uint64_t>(dim));
  }
  return dims;
}

void write_metadata(JsonWriter& json, const Metadata& metadata, const std::string& where) {
  json.key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value))
      fail(Errc::bad_utf8, where, "metadata {} is not UTF-8", quoted(key));
    json.member(key, value);
  }
  json.end_object();
}

void write_line(JsonWriter& json, const HeaderLine& line) {
  json.key(line.name).begin_object().member("dtype", info(line.dtype).code).key("shape").begin_array();
  for (const std::uint64_t dim : line.shape) json.value(dim);
  json.end_array()
      .key("data_offsets")
      .begin_array()
      .value(line.begin)
      .value(line.end)
      .end_array()
      .end_object();
}

// Sizes that are multiples of 64 first: each of them then begins on one. Behind them the wide multiples come
// before the narrow ones, so that every tensor stays aligned to its own elements. An empty tensor is a
// multiple of anything.
unsigned aligned_rank(std::uint64_t size) {
  return 6U - std::min(6U, static_cast<unsigned>(std::countr_zero(size)));
}

std::vector<std::size_t> order_of(std::span<const Declared> tensors, std::span<const std::uint64_t> sizes,
                                  Arrangement arrangement) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (arrangement == Arrangement::aligned && aligned_rank(sizes[a]) != aligned_rank(sizes[b]))
      return aligned_rank(sizes[a]) < aligned_rank(sizes[b]);
    if (tensors[a].dtype != tensors[b].dtype) return tensors[a].dtype > tensors[b].dtype;
    return tensors[a].name < tensors[b].name;
  });
  return order;
}

}  // namespace

std::string head_of(std::span<const HeaderLine> lines, const std::optional<Metadata>& metadata,
                    const std::string& where, Arrangement arrangement) {
  check_unique(lines, where);
  JsonWriter json;
  json.begin_object();
  if (metadata) write_metadata(json, *metadata, where);
  for (const HeaderLine& line : lines) {
    check_name(line.name, where);
    write_line(json, line);
  }
  json.end_object();
  std::string text = std::move(json).text();
  const std::size_t alignment = alignment_of(arrangement);
  const std::size_t begin = (kLengthBytes + text.size() + alignment - 1) / alignment * alignment;
  text.resize(begin - kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) {
    fail(Errc::header_too_large, where,
         "the header would have {} bytes, the limit is {} ({} tensors, {} metadata keys)", text.size(),
         kMaxHeaderBytes, lines.size(), metadata ? metadata->size() : 0);
  }
  const std::uint64_t length = text.size();
  std::string head(kLengthBytes, '\0');
  std::memcpy(head.data(), &length, kLengthBytes);
  return head += text;
}

Layout make_layout(std::span<const Declared> tensors, const std::optional<Metadata>& metadata,
                   const std::string& where, Arrangement arrangement) {
  std::vector<std::vector<std::uint64_t>> shapes;
  std::vector<std::uint64_t> sizes;
  for (const Declared& tensor : tensors) {
    if (!info(tensor.dtype).in_safetensors) {
      fail(Errc::not_representable, where, "tensor {} is {}, which Safetensors does not have{}",
           quoted(tensor.name), info(tensor.dtype).code, instead_of(tensor.dtype));
    }
    shapes.push_back(unsigned_dims(tensor.shape, where, tensor.name));
    sizes.push_back(data_size(tensor.dtype, shapes.back(), where, tensor.name));
  }
  Layout layout;
  std::vector<HeaderLine> lines;
  std::uint64_t offset = 0;
  for (const std::size_t i : order_of(tensors, sizes, arrangement)) {
    const std::uint64_t end = checked_add(offset, sizes[i], where);
    lines.push_back({tensors[i].name, tensors[i].dtype, shapes[i], offset, end});
    layout.places.push_back({i, offset, end});
    offset = end;
  }
  layout.head = head_of(lines, metadata, where, arrangement);
  layout.file_size = checked_add<std::uint64_t>(offset, layout.head.size(), where);
  for (Layout::Place& place : layout.places) {
    place.begin += layout.head.size();
    place.end += layout.head.size();
  }
  return layout;
}

std::vector<Declared> declared_by(const Checkpoint& checkpoint) {
  std::vector<Declared> tensors;
  tensors.reserve(checkpoint.size());
  for (const Entry& entry : checkpoint) tensors.push_back({entry.name, entry.dtype, entry.shape});
  return tensors;
}

}  // namespace ballast::safetensors
