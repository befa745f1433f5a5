// SPDX-License-Identifier: Apache-2.0
#include "formats/template_words.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/words.h"

namespace ballast::jinja {
namespace {

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U);
}

constexpr std::size_t kDeepest = 64;  // brackets in each other: looked through once for each

class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  // One "{{ … }}" or "{% … %}" after the other; false when one cannot be told.
  bool next(std::vector<Word>& words) {
    words.clear();
    const char kind = begin();
    if (kind == '\0') return true;  // no more
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (depth == 0 && c == (kind == '{' ? '}' : '%') && text_.substr(at_ + 1).starts_with('}')) {
        at_ += 2;
        return words.empty() || !words.front().is_name("raw");
      }
      if (c == '"' || c == '\'') {
        if (!take_text(c, words)) return false;
        continue;
      }
      if (begins_name(c) || is_digit(c)) {
        take_while(begins_name(c) ? Sort::name : Sort::number, words);
        continue;
      }
      if ((c == '(' || c == '[' || c == '{') && ++depth > kDeepest) return false;
      if (c == ')' || c == ']' || c == '}') {
        if (depth == 0) return false;
        --depth;
      }
      const bool is_blank = c == ' ' || (c >= '\t' && c <= '\r');
      const bool is_trim = words.empty() && (c == '-' || c == '+');
      if (!is_blank && !is_trim) words.push_back({Sort::mark, text_.substr(at_, 1)});
      ++at_;
    }
    return false;
  }

 private:
  // Behind the next beginning, whose second letter is returned; 0 at the end.
  char begin() {
    for (; at_ + 1 < text_.size(); ++at_) {
      if (text_[at_] != '{') continue;
      const char kind = text_[at_ + 1];
      if (kind == '#') {
        const std::size_t end = text_.find("#}", at_ + 2);
        if (end == std::string_view::npos) break;  // an error to Jinja
        at_ = end + 1;
      } else if (kind == '{' || kind == '%') {
        at_ += 2;
        return kind;
      }
    }
    at_ = text_.size();
    return '\0';
  }

  bool take_text(char quote, std::vector<Word>& words) {
    const std::size_t begin = ++at_;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_)
      if (text_[at_] == '\\') ++at_;
    if (at_ >= text_.size()) return false;
    words.push_back({Sort::text, text_.substr(begin, at_ - begin)});
    ++at_;
    return true;
  }

  void take_while(Sort sort, std::vector<Word>& words) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (begins_name(text_[at_]) || is_digit(text_[at_]))) ++at_;
    words.push_back({sort, text_.substr(begin, at_ - begin)});
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::vector<Word>>> words_of(std::string_view text) {
  std::vector<std::vector<Word>> pieces;
  WordReader reader(text);
  for (std::vector<Word> words;;) {
    if (!reader.next(words)) return std::nullopt;
    if (words.empty()) return pieces;  // the end, or "{{ }}", with which Jinja takes nothing of the template
    pieces.push_back(words);
  }
}

std::size_t closing(Words words, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t i = open; i < words.size(); ++i) {
    if (words[i].is('(') || words[i].is('[') || words[i].is('{')) ++depth;
    if ((words[i].is(')') || words[i].is(']') || words[i].is('}')) && --depth == 0) return i;
  }
  return words.size();
}

std::size_t opening(Words words, std::size_t close) {
  std::size_t depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (words[i].is(')') || words[i].is(']') || words[i].is('}')) ++depth;
    if ((words[i].is('(') || words[i].is('[') || words[i].is('{')) && --depth == 0) return i;
  }
  return 0;
}

std::vector<Words> arguments_in(Words words) {
  std::vector<Words> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].is('(') || words[i].is('[') || words[i].is('{')) i = closing(words, i);
    if (i >= words.size() || !words[i].is(',')) continue;
    parts.push_back(words.subspan(begin, i - begin));
    begin = i + 1;
  }
  if (begin < words.size()) parts.push_back(words.subspan(begin));
  return parts;
}

bool is_subscript(Words words, std::size_t open) {
  constexpr std::string_view kBefore[] = {"in", "if", "elif", "else", "not", "and", "or", "is", "set"};
  if (open == 0 || !words[open].is('[')) return false;
  const Word& before = words[open - 1];
  if (before.sort == Sort::mark) return before.is(')') || before.is(']') || before.is('}');
  const bool is_attribute = open > 1 && words[open - 2].is('.');
  return before.sort != Sort::name || is_attribute || !is_among(kBefore, before.text);
}

}  // namespace ballast::jinja
