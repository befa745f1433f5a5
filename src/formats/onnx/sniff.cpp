// SPDX-License-Identifier: Apache-2.0
// Is this a ModelProto? Only its first bytes are at hand. Protobuf writers write fields in the order of their
// numbers, so a model begins with ir_version (08), a small number, and goes on with texts, the graph, opsets.
#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/onnx.h"

namespace ballast::onnx_file {
namespace {

constexpr std::uint64_t kMostIrVersion = 1000;  // 2026: 13

class Head {
 public:
  explicit Head(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63 && !at_end(); shift += 7) {
      const auto byte = static_cast<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  // As much of it as is there.
  std::string_view text(std::uint64_t size) {
    const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes_.size() - at_));
    const std::string_view found = as_text(bytes_.subspan(at_, there));
    at_ += there;
    return found;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

bool is_plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
  });
}

bool is_text_field(std::uint64_t number) {
  return number == model_proto::producer_name || number == model_proto::producer_version ||
         number == model_proto::domain || number == model_proto::doc_string;
}

// What a graph or an opset may begin with: the tags of the fields they have.
constexpr std::string_view kGraphTags = "\x0A\x12\x2A\x52\x5A\x62\x6A\x72\x7A\x82";
constexpr std::string_view kOpsetTags = "\x0A\x10";

bool may_begin(std::string_view inner, std::string_view tags) {
  return inner.empty() || tags.find(inner[0]) != std::string_view::npos;
}

}  // namespace

bool is_onnx(std::span<const std::byte> bytes) noexcept {
  Head head(bytes);
  if (head.varint() != std::uint64_t{model_proto::ir_version} << 3U) return false;
  const auto version = head.varint();
  if (!version || *version == 0 || *version > kMostIrVersion) return false;
  bool says_more = false;
  for (bool has_graph = false;; says_more = true) {
    if (head.at_end()) return has_graph;
    const auto tag = head.varint();
    const auto value = tag ? head.varint() : std::nullopt;
    if (!value) return says_more && head.at_end();
    if (*tag == std::uint64_t{model_proto::model_version} << 3U) continue;
    if ((*tag & 7U) != 2) return false;
    const std::uint64_t number = *tag >> 3U;
    const std::string_view inner = head.text(*value);
    if (number == model_proto::graph) {
      if (!inner.empty()) return may_begin(inner, kGraphTags);
      has_graph = true;
    } else if (number == model_proto::opset_import) {
      if (!may_begin(inner, kOpsetTags)) return false;
    } else if (!is_text_field(number) || !is_plain(inner)) {
      return false;
    } else if (inner.size() < *value) {
      return true;  // a text longer than what is at hand
    }
  }
}

}  // namespace ballast::onnx_file
