// SPDX-License-Identifier: Apache-2.0
#include "scaffold/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ballast/error.h"

namespace tool {
namespace {

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::string_view kTaken[] = {"alignas",       "alignof",      "and",
                                       "and_eq",        "asm",          "assert",
                                       "auto",          "bitand",       "bitor",
                                       "bool",          "break",        "case",
                                       "catch",         "char",         "char16_t",
                                       "char32_t",      "char8_t",      "class",
                                       "co_await",      "co_return",    "co_yield",
                                       "compl",         "concept",      "const",
                                       "const_cast",    "consteval",    "constexpr",
                                       "constinit",     "continue",     "decltype",
                                       "default",       "delete",       "do",
                                       "double",        "dynamic_cast", "else",
                                       "enum",          "errno",        "explicit",
                                       "export",        "extern",       "false",
                                       "float",         "for",          "friend",
                                       "goto",          "if",           "inline",
                                       "int",           "linux",        "long",
                                       "major",         "makedev",      "minor",
                                       "mutable",       "namespace",    "new",
                                       "noexcept",      "not",          "not_eq",
                                       "nullptr",       "operator",     "or",
                                       "or_eq",         "private",      "protected",
                                       "public",        "register",     "reinterpret_cast",
                                       "requires",      "return",       "short",
                                       "signed",        "sizeof",       "static",
                                       "static_assert", "static_cast",  "stderr",
                                       "stdin",         "stdout",       "struct",
                                       "switch",        "template",     "this",
                                       "thread_local",  "throw",        "true",
                                       "try",           "typedef",      "typeid",
                                       "typename",      "typeof",       "union",
                                       "unix",          "unsigned",     "using",
                                       "virtual",       "visit_fields", "void",
                                       "volatile",      "wchar_t",      "while",
                                       "xor",           "xor_eq"};

}  // namespace

bool is_position(std::string_view text) {
  return !text.empty() && text.size() < 6 && std::all_of(text.begin(), text.end(), is_decimal_digit) &&
         (text.size() == 1 || text[0] != '0');
}

bool is_identifier(std::string_view text) {
  const auto is_word = [](char c) { return is_upper(c) || is_lower(c) || is_decimal_digit(c) || c == '_'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word) && !is_decimal_digit(text[0]) &&
         text.find("__") == text.npos && text.back() != '_' &&
         !(text[0] == '_' && text.size() > 1 && is_upper(text[1]));
}

std::string why_no_name(std::string_view text) {
  if (text.empty()) return "is empty";
  if (is_decimal_digit(text[0])) return "begins with a digit";
  for (const char c : text)
    if (!is_upper(c) && !is_lower(c) && !is_decimal_digit(c) && c != '_')
      return fmt::format("has {} in it; letters, digits and underscores make a name",
                         ballast::quoted(std::string_view(&c, 1)));
  if (text.find("__") != text.npos || (text[0] == '_' && text.size() > 1 && is_upper(text[1])))
    return "is a name C++ reserves for compilers (two underscores, or one and a capital letter)";
  if (text.back() == '_') return "ends with an underscore, which names of fields lose";
  if (std::find(std::begin(kTaken), std::end(kTaken), text) != std::end(kTaken))
    return "is a word of C++, or of a system's headers";
  if (is_taken_by_cpp(text)) {
    const std::string other = std::string(1, text[0]) + lowered(text.substr(1));
    return fmt::format("could be a macro, having no lower-case letter; {} could not", ballast::quoted(other));
  }
  return {};
}

bool is_taken_by_cpp(std::string_view text) {
  const bool looks_like_a_macro = text.size() > 1 && std::none_of(text.begin(), text.end(), is_lower);
  return looks_like_a_macro || std::find(std::begin(kTaken), std::end(kTaken), text) != std::end(kTaken);
}

std::string camel_case(std::string_view text) {
  std::string out;
  bool upper = true;
  for (const char c : text) {
    if (!is_upper(c) && !is_lower(c) && !(is_decimal_digit(c) && !out.empty())) {
      upper = true;
      continue;
    }
    out += upper && is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  if (out.empty()) return "Part";
  return is_taken_by_cpp(out) ? out + "Part" : out;
}

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string cpp_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F || c == '"' || c == '\\' || c == '?')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + '"';
}

}  // namespace tool
