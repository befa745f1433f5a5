// SPDX-License-Identifier: Apache-2.0
#include "formats/burn/json_record.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/json_scanner.h"
#include "base/utf8.h"

namespace ballast::burn {
namespace {

class JsonToMpk {
 public:
  JsonToMpk(std::span<char> text, const std::string& where, Budget& budget)
      : json_(text, where), budget_(budget) {}

  std::string run() {
    value({});
    json_.finish();
    return std::move(out_);
  }

 private:
  using Kind = JsonScanner::Kind;

  // Text grows by doubling, and lies there twice while it does.
  void make_room() {
    if (out_.size() < counted_) return;
    const std::size_t more = std::max(out_.size(), kFirstRoom);
    budget_.take(2 * more);
    counted_ += more;
  }

  void value(std::string_view key) {
    make_room();
    switch (json_.peek()) {
      case Kind::object:
        return object();
      case Kind::array:
        return array(key == "bytes");
      case Kind::string:
        return text(json_.string());
      case Kind::number:
        return number();
      case Kind::boolean:
        out_ += json_.take_text("true") ? '\xC3' : '\xC2';
        if (out_.back() == '\xC2' && !json_.take_text("false")) json_.skip_value();
        return;
      case Kind::null:
        json_.null();
        out_ += '\xC0';
    }
  }

  // Counts are known behind what they count.
  std::size_t open(char code) {
    out_ += code;
    out_.append(4, '\0');
    return out_.size();
  }

  void close(std::size_t begin, std::uint32_t count) {
    for (std::size_t i = 0; i < 4; ++i) out_[begin - 1 - i] = static_cast<char>(count >> (8 * i) & 0xFFU);
  }

  void object() {
    const std::size_t begin = open('\xDF');
    std::uint32_t count = 0;
    json_.object([&](std::string_view key) {
      const std::string name(key);
      text(name);
      value(name);
      ++count;
    });
    close(begin, count);
  }

  void array(bool may_be_bytes) {
    const std::size_t begin = open(may_be_bytes ? '\xC6' : '\xDD');
    std::uint32_t count = 0;
    json_.array([&] {
      // A member of somebody's own may be called "bytes", too.
      if (count == 0 && may_be_bytes && json_.peek() != Kind::number) {
        may_be_bytes = false;
        out_[begin - 5] = '\xDD';
      }
      make_room();
      if (may_be_bytes)
        byte();
      else
        value({});
      ++count;
    });
    close(begin, count);
  }

  void byte() {
    const JsonScanner::Number number = json_.number();
    if (!number.is_unsigned || number.value > 0xFF)
      fail(Errc::bad_burn, json_.where(), "{} among the bytes of a tensor", quoted(number.text));
    out_ += static_cast<char>(number.value);
  }

  void text(std::string_view text) {
    out_ += '\xDB';
    append_big_endian(static_cast<std::uint64_t>(text.size()), 4);
    out_ += text;
  }

  void number() {
    const JsonScanner::Number number = json_.number();
    if (number.is_unsigned && number.value < 0x80) {
      out_ += static_cast<char>(number.value);
      return;
    }
    if (number.is_unsigned) {
      out_ += '\xCF';
      return append_big_endian(number.value, 8);
    }
    const char* begin = number.text.data();
    const char* end = begin + number.text.size();
    std::int64_t whole = 0;
    if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc() && read.ptr == end) {
      out_ += '\xD3';
      return append_big_endian(static_cast<std::uint64_t>(whole), 8);
    }
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc())
      fail(Errc::bad_burn, json_.where(), "{} is no number a double has", quoted(number.text));
    out_ += '\xCB';
    append_big_endian(std::bit_cast<std::uint64_t>(value), 8);
  }

  void append_big_endian(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = bytes; i-- > 0;) out_ += static_cast<char>(value >> (8 * i) & 0xFFU);
  }

  static constexpr std::size_t kFirstRoom = 4096;

  JsonScanner json_;
  Budget& budget_;
  std::string out_;
  std::size_t counted_ = 0;
};

}  // namespace

bool is_json_record(std::span<const std::byte> head) noexcept {
  const std::string_view text = as_text(head);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{' && text.find("\"metadata\"") < text.find("\"float\"") &&
         text.find("\"float\"") != text.npos && text.find("FileRecorder<") != text.npos;
}

bool is_bin_record(std::span<const std::byte> head) noexcept {
  // Lengths and text: "f32", "i32", "burn_core::record::file::BinFileRecorder<…".
  const std::string_view text = as_text(head.first(std::min<std::size_t>(head.size(), 256)));
  return !text.empty() && text[0] == '\3' && text.find("burn_core::record::file::Bin") != text.npos;
}

std::shared_ptr<const Storage> mpk_of_json(std::span<const std::byte> json, const std::string& where,
                                           Budget& budget) {
  budget.take(json.size());
  std::string text(as_text(json));
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8");
  const std::size_t size = text.size();
  text.resize(size + JsonScanner::kPadding, '\0');
  const auto out = std::make_shared<const std::string>(JsonToMpk({text.data(), size}, where, budget).run());
  return Storage::borrow(static_cast<const void*>(out->data()), out->size(), [out] {});
}

}  // namespace ballast::burn
