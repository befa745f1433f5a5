// SPDX-License-Identifier: Apache-2.0
// A Value as one line of text that says everything Python could see of it: kinds, classes, exact numbers, the
// order of dicts, and which containers are one object. scripts/check-pickle writes the same line from the
// objects of a real unpickler.
//
//   N T F                  None, True, False
//   i12 f3ff0000000000000  an int; a float by its bits, any NaN as fnan
//   c(f…,f…)               complex
//   s<hex> b<hex> B<hex>   str, bytes, bytearray
//   (a,b) [a,b] {k:v,}     tuple, list, dict in order; {a,b}: set, the texts of its elements sorted
//   G<name>                a class or function itself
//   O<class>(a){k:v,}|s[i]{k:v,}   an object: arguments, keywords, state, items, pairs
//   @{k:v,}                Python attributes behind a container
//   t<class>float32g[2,3]<hex>   a tensor or array: dtype, g when it wants gradients, sizes, bytes in
//   row-major
//                          order; without bytes "meta"
//   <class>                in front of what is not Python's plain class of its kind
//   #1= … #1               a mutable thing at its first visit, and later
//   ^                      deeper than kDeepest
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ballast/value.h"

namespace ballast::testing {

/// A name with everything but letters, digits, '_' and '.' as %XX.
inline std::string escaped_name(std::string_view name) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

class CanonicalText {
 public:
  /// "~" when the text would be too long: values share parts, so it may be far larger than the file.
  static std::string of(const Value& value) {
    std::size_t left = kLongest;
    CanonicalText text(left);
    text.write(value, 0);
    return left == 0 ? "~" : std::move(text.out_);
  }

 private:
  static constexpr std::size_t kLongest = 65'536;
  static constexpr std::size_t kDeepest = 60;

  explicit CanonicalText(std::size_t& left) : left_(left) {}

  void put(std::string_view text) {
    left_ -= std::min(left_, text.size());
    if (left_ != 0) out_ += text;
  }

  void hex(std::string_view bytes) {
    constexpr std::string_view kHex = "0123456789abcdef";
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      put(kHex.substr(byte >> 4U, 1));
      put(kHex.substr(byte & 15U, 1));
      if (left_ == 0) return;
    }
  }

  void floating(double value) {
    if (value != value) return put("fnan");
    std::string digits(16, '0');
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (std::size_t i = 16; i-- > 0; bits >>= 4U) digits[i] = "0123456789abcdef"[bits & 15U];
    put("f" + digits);
  }

  void type_unless(const Value& value, std::string_view plain) {
    if (value.type() != plain) put("<" + escaped_name(value.type()) + ">");
  }

  /// False when the thing was visited before.
  bool enter(const Value& value) {
    const auto [place, added] = numbers_.try_emplace(value.identity(), numbers_.size());
    put("#" + std::to_string(place->second) + (added ? "=" : ""));
    return added;
  }

  void elements(const Value& value, std::size_t depth) {
    for (std::size_t i = 0; i < value.size() && left_ != 0; ++i) {
      if (i != 0) put(",");
      write(value.element(i), depth + 1);
    }
  }

  void pairs(const Value& dict, std::size_t depth) {
    put("{");
    for (std::size_t i = 0; i < dict.size() && left_ != 0; ++i) {
      write(dict.key(i), depth + 1);
      put(":");
      write(dict.value(i), depth + 1);
      put(",");
    }
    put("}");
  }

  /// Each element is numbered for itself: the order of a Python set is not ours.
  void set(const Value& value, std::size_t depth) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < value.size() && left_ != 0; ++i) {
      CanonicalText text(left_);
      text.write(value.element(i), depth + 1);
      texts.push_back(std::move(text.out_));
    }
    std::sort(texts.begin(), texts.end());
    put("{");
    for (std::size_t i = 0; i < texts.size(); ++i) put((i != 0 ? "," : "") + texts[i]);
    put("}");
  }

  void object(const Value& value, std::size_t depth) {
    put("O" + escaped_name(value.type()) + "(");
    elements(value.args(), depth);
    put(")");
    if (value.kwargs().size() != 0) pairs(value.kwargs(), depth);
    if (!value.state().is_none()) {
      put("|");
      write(value.state(), depth + 1);
    }
    if (value.items().size() != 0) {
      put("[");
      elements(value.items(), depth);
      put("]");
    }
    if (value.pairs().size() != 0) pairs(value.pairs(), depth);
  }

  void leaf(const Value& value) {
    switch (value.kind()) {
      case Kind::none:
        return put("N");
      case Kind::boolean:
        type_unless(value, "bool");
        return put(value.as_bool() ? "T" : "F");
      case Kind::integer:
        type_unless(value, "int");
        return put("i" + value.as_decimal());
      case Kind::floating:
        type_unless(value, "float");
        return floating(value.as_float());
      case Kind::complex:
        type_unless(value, "complex");
        put("c(");
        floating(value.as_complex().real());
        put(",");
        floating(value.as_complex().imag());
        return put(")");
      case Kind::string:
        type_unless(value, "str");
        put("s");
        return hex(value.as_string());
      default:
        return tensor(value);
    }
  }

  void tensor(const Value& value) {
    const TensorValue held = value.tensor_value();
    put("t<" + escaped_name(value.type()) + ">" + std::string(info(held.tensor.dtype()).torch_name));
    put(held.requires_grad ? "g[" : "[");
    for (const std::int64_t dim : held.tensor.shape()) put(std::to_string(dim) + ",");
    put("]");
    if (!held.tensor.has_data()) return put("meta");
    std::string bytes(std::min<std::size_t>(held.tensor.size_bytes(), left_), '\0');
    held.tensor.read(0, std::as_writable_bytes(std::span(bytes)));
    hex(bytes);
  }

  void bytes(const Value& value) {
    const auto content = value.as_bytes();
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    if (value.type() == "bytearray") {
      if (!enter(value)) return;
      put("B");
    } else {
      type_unless(value, "bytes");
      put("b");
    }
    hex(text);
  }

  void write(const Value& value, std::size_t depth) {
    if (left_ == 0) return;
    if (depth > kDeepest) return put("^");
    switch (value.kind()) {
      case Kind::bytes:
        bytes(value);
        break;
      case Kind::tuple:
        type_unless(value, "tuple");
        put("(");
        elements(value, depth);
        put(")");
        break;
      case Kind::list:
        if (!enter(value)) return;
        type_unless(value, "list");
        put("[");
        elements(value, depth);
        put("]");
        break;
      case Kind::set:
        if (value.type() == "set" && !enter(value)) return;
        put("<" + escaped_name(value.type()) + ">");
        set(value, depth);
        break;
      case Kind::dict:
        if (!enter(value)) return;
        type_unless(value, "dict");
        pairs(value, depth);
        break;
      case Kind::object:
        if (value.is_global()) return put("G" + escaped_name(value.type()));
        if (!enter(value)) return;
        object(value, depth);
        return;
      default:
        leaf(value);
        break;
    }
    attributes(value, depth);
  }

  void attributes(const Value& value, std::size_t depth) {
    const Value held = value.attributes();
    if (held.is_none()) return;
    if (held.kind() != Kind::dict) {
      put("@");
      write(held, depth + 1);
    } else if (held.size() != 0) {
      put("@");
      pairs(held, depth);
    }
  }

  std::size_t& left_;
  std::string out_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
};

}  // namespace ballast::testing
