// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <algorithm>
#include <cmath>

#include "output.h"

namespace tool {
namespace {

constexpr std::size_t kPiece = 1U << 16U;

bool is_plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

}  // namespace

void JsonStream::separate() {
  if (text_.size() >= kPiece) hand_on();
  if (after_key_ || levels_.empty()) {
    after_key_ = false;
    return;
  }
  Level& level = levels_.back();
  if (!level.first) text_ += ',';
  if (level.rows)
    text_ += "\n  ";
  else if (levels_.size() == 1 && !level.first)
    text_ += "\n ";
  level.first = false;
}

void JsonStream::hand_on() {
  written_ += text_.size();
  out_.write(text_);
  text_.clear();
}

JsonStream& JsonStream::begin(char open, char close, bool rows) {
  separate();
  text_ += open;
  levels_.push_back({close, rows, true});
  return *this;
}

JsonStream& JsonStream::end() {
  text_ += levels_.back().close;
  levels_.pop_back();
  return *this;
}

JsonStream& JsonStream::key(std::string_view name) {
  value(name);
  text_ += ':';
  after_key_ = true;
  return *this;
}

JsonStream& JsonStream::literal(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

// In runs of plain characters and of others, so that a long text is not gathered once more.
JsonStream& JsonStream::value(std::string_view text) {
  separate();
  text_ += '"';
  while (!text.empty()) {
    const bool plain = is_plain(text.front());
    const auto* const end = std::find_if(text.begin(), text.begin() + std::min(text.size(), kPiece),
                                         [&](char c) { return is_plain(c) != plain; });
    auto size = static_cast<std::size_t>(end - text.begin());
    while (!plain && size < text.size() && is_continuation(text[size])) ++size;  // no character is cut
    const std::string_view run = text.substr(0, size);
    if (plain) {
      text_ += run;
    } else {
      const std::string escaped = to_text(Json(run));
      text_ += std::string_view(escaped).substr(1, escaped.size() - 2);
    }
    text.remove_prefix(size);
    if (text_.size() >= kPiece) hand_on();
  }
  text_ += '"';
  return *this;
}

JsonStream& JsonStream::value(double number) {
  return value(number_or_null(number));
}

JsonStream& JsonStream::value(ballast::ShapeView shape) {
  begin_array();
  for (const std::int64_t dim : shape) value(dim);
  return end();
}

JsonStream& JsonStream::value(const Json& any) {
  return literal(to_text(any));
}

bool JsonStream::take_back(const Mark& mark) {
  if (mark.written < written_) return false;
  text_.resize(mark.written - written_);
  levels_.resize(mark.depth);
  if (!levels_.empty()) levels_.back().first = mark.first;
  after_key_ = false;
  return true;
}

void JsonStream::finish() {
  while (!levels_.empty()) end();
  text_ += '\n';
  hand_on();
}

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void write_document(Output& out, const Json& object) {
  JsonStream json(out);
  json.begin_object();
  for (const auto& [key, value] : object.items()) {
    json.key(key);
    if (!value.is_array() || value.empty() || !value.front().is_object()) {
      json.value(value);
      continue;
    }
    json.begin_rows();
    for (const Json& item : value) json.value(item);
    json.end();
  }
  json.finish();
}

void write_metadata(JsonStream& json, const ballast::Metadata& metadata) {
  json.begin_object();
  for (const auto& [key, value] : metadata) json.member(key, value);
  json.end();
}

Json error_object(std::string_view code, std::string_view where, std::string_view message) {
  return {{"schema", 1}, {"error", {{"code", code}, {"where", where}, {"message", message}}}};
}

Json shape_array(ballast::ShapeView shape) {
  Json array = Json::array();
  for (const std::int64_t dim : shape) array.push_back(dim);
  return array;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace tool
