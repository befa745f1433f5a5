// SPDX-License-Identifier: Apache-2.0
// JSON, read strictly and in place: a cursor for parsers that know what they expect. Accepts what RFC 8259
// allows and nothing more, no deeper than kMaxDepth, and no number beyond the range of double. Strings are
// unescaped where they lie, so they need no memory of their own. The text must be UTF-8 already (is_utf8()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "base/utf8.h"  // is_utf8

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class JsonScanner {
 public:
  static constexpr std::size_t kPadding = 8;  // zero bytes that must follow the text: they stop every loop
  static constexpr int kMaxDepth = 127;

  enum class Kind : std::uint8_t { object, array, string, number, boolean, null };

  struct Number {
    bool is_unsigned;     // a whole number in [0, 2^64) written without sign, point or exponent
    std::uint64_t value;  // when is_unsigned
    std::string_view text;
  };

  /// Changes `text`; `where` is the place for messages.
  JsonScanner(std::span<char> text, std::string where)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), where_(std::move(where)) {}

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - begin_); }

  [[nodiscard]] std::size_t offset() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

  /// What comes next, after any white space; fails when it is not the beginning of a value.
  [[nodiscard]] Kind peek() {
    switch (next()) {
      case '{':
        return Kind::object;
      case '[':
        return Kind::array;
      case '"':
        return Kind::string;
      case 't':
      case 'f':
        return Kind::boolean;
      case 'n':
        return Kind::null;
      case '-':
        return Kind::number;
      default:
        break;
    }
    if (*at_ < '0' || *at_ > '9') unexpected("a value");
    return Kind::number;
  }

  /// Each of these takes the next thing, which must be of its kind.
  [[nodiscard]] std::string_view string();
  [[nodiscard]] Number number();
  void null();
  void skip_value();

  /// Calls member(key) for every member; it must take the value.
  template <class Member>
  void object(Member&& member) {
    open('{');
    if (!take('}')) {
      do {
        if (next() != '"') unexpected("a string as key");
        const std::string_view key = string();
        expect(':');
        member(key);
      } while (take(','));
      expect('}');
    }
    --depth_;
  }

  /// Calls element() for every element; it must take the value.
  template <class Element>
  void array(Element&& element) {
    open('[');
    if (!take(']')) {
      do element();
      while (take(','));
      expect(']');
    }
    --depth_;
  }

  /// Nothing but white space may be left.
  void finish();

  /// Takes `text` when it comes next, byte for byte: for the forms writers are known to produce.
  bool take_text(std::string_view text) {
    if (static_cast<std::size_t>(end_ - at_) < text.size() || std::string_view(at_, text.size()) != text)
      return false;
    at_ += text.size();
    return true;
  }

  /// Digits that make up an unsigned 64-bit number, ended by something that is not part of a number; false,
  /// and nothing taken, otherwise.
  bool take_unsigned(std::uint64_t& value);

  /// Goes back to an offset() since which no string() was taken.
  void rewind(std::size_t offset) { at_ = begin_ + offset; }

 private:
  char next() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
    return *at_;
  }

  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) unexpected(std::string_view(&c, 1));
  }

  void open(char c) {
    expect(c);
    if (++depth_ > kMaxDepth) too_deep();
  }

  void literal(std::string_view text);
  [[nodiscard]] std::string_view unescape(char* first);
  [[nodiscard]] std::uint32_t hex4();
  [[nodiscard]] std::uint32_t unicode_escape();
  [[noreturn]] void unexpected(std::string_view expected);
  [[noreturn]] void too_deep() const;

  char* begin_;
  char* at_;
  char* end_;
  int depth_ = 0;
  std::string where_;
};

}  // namespace ballast

#pragma GCC visibility pop
