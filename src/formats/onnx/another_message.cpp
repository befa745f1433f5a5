// SPDX-License-Identifier: Apache-2.0
// Messages of protobuf do not say what they are: TensorFlow's SavedModel has a number and then graphs where a
// model of ONNX has a number and then a text, and each reader steps over what it does not know. So a model is
// ONNX's alone when it has ONNX's fields and no others, each spelled in the one way that writers spell them,
// and when its texts are texts: the tags of nested messages that matter are control characters.
#include <algorithm>
#include <array>

#include "base/fail.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/wire.h"

namespace ballast::onnx_file {
namespace {

enum class Content : std::uint8_t { number, word, text, message };

struct KnownField {
  std::uint32_t number;
  Content content;
};

constexpr KnownField kFields[] = {
    {model_proto::ir_version, Content::number},      {model_proto::producer_name, Content::word},
    {model_proto::producer_version, Content::word},  {model_proto::domain, Content::word},
    {model_proto::model_version, Content::number},   {model_proto::doc_string, Content::text},
    {model_proto::graph, Content::message},          {model_proto::opset_import, Content::message},
    {model_proto::metadata_props, Content::message}, {model_proto::training_info, Content::message},
    {model_proto::functions, Content::message},      {model_proto::configuration, Content::message},
};

constexpr std::uint64_t kLongestWord = 256;
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 20U;

std::uint64_t varint_bytes(std::uint64_t value) {
  std::uint64_t bytes = 1;
  for (; value >= 0x80; value >>= 7U) ++bytes;
  return bytes;
}

// The bytes before the content of a field: its tag, and its length where it has one.
bool is_spelled_plainly(const Field& field, std::uint64_t next) {
  const std::uint64_t tag = varint_bytes(std::uint64_t{field.number} << 3U);
  if (field.wire == Wire::varint) return next - field.at == tag + varint_bytes(field.value);
  return field.range.begin - field.at == tag + varint_bytes(field.range.size());
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

bool is_line_break_or_tab(char c) {
  return c == '\n' || c == '\r' || c == '\t';
}

class Looker {
 public:
  explicit Looker(const ByteSource& source) : wire_(source) {}

  // Why a field is not one that a model of ONNX would have here; "" when it is.
  std::string run() {
    Range rest = wire_.whole();
    Field field;
    while (wire_.next(rest, field)) {
      std::string why = look_at(field, rest.begin);
      if (!why.empty()) return why;
    }
    return {};
  }

 private:
  std::string look_at(const Field& field, std::uint64_t next) {
    const auto* known = std::find_if(std::begin(kFields), std::end(kFields),
                                     [&](const KnownField& one) { return one.number == field.number; });
    const auto said = [&](std::string_view what) {
      return fmt::format(
          "{} at offset {}, which no model of ONNX has: another reader of protobuf may find a "
          "message of its own in it",
          what, field.at);
    };
    if (known == std::end(kFields)) return said(fmt::format("has a field {}", field.number));
    const Wire wire = known->content == Content::number ? Wire::varint : Wire::bytes;
    if (field.wire != wire) return said(fmt::format("has a field {} of another kind", field.number));
    if (!is_spelled_plainly(field, next)) return said("has a number spelled longer than it is");
    if (known->content == Content::message && field.number != model_proto::graph) return {};
    bool& seen = seen_[static_cast<std::size_t>(known - kFields)];
    if (seen) return said(fmt::format("has a second field {}", field.number));
    seen = true;
    const bool is_word = known->content == Content::word;
    if (!is_word && known->content != Content::text) return {};
    if (field.range.size() > (is_word ? kLongestWord : kLongestText)) return said("has a very long text");
    const std::string text = wire_.text(field, "a text", kLongestText);
    const bool is_plain = std::none_of(text.begin(), text.end(), [&](char c) {
      return is_control(c) && (is_word || !is_line_break_or_tab(c));
    });
    return is_plain ? std::string() : said("has a text with control characters");
  }

  WireReader wire_;
  std::array<bool, std::size(kFields)> seen_{};
};

}  // namespace

std::string as_another_message(const ByteSource& source) {
  try {
    return Looker(source).run();
  } catch (const Error&) {
    return {};  // then it is not opened either, which says why
  }
}

}  // namespace ballast::onnx_file
