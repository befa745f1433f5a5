// SPDX-License-Identifier: Apache-2.0
// Which keys Python takes for equal: 1, True and 1.0 are one key, "1" and b"1" are two others, a tuple is
// equal to a tuple of equal parts, and what has no value of its own is equal to itself.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

void append_bits(std::string& out, char tag, std::uint64_t bits) {
  out += tag;
  out.append(reinterpret_cast<const char*>(&bits), sizeof bits);
}

void append_text(std::string& out, char tag, std::uint64_t type, std::string_view text) {
  append_bits(out, tag, type);
  append_bits(out, ':', text.size());
  out += text;
}

// Two's complement, little-endian, as short as it can be: tree_ has taken off what only repeats the sign.
void append_integer(std::string& out, std::string_view bytes) {
  append_text(out, 'i', 0, bytes);
}

void append_small(std::string& out, std::int64_t value) {
  append_integer(out, {reinterpret_cast<const char*>(&value), sizeof value});
}

// A whole number beyond 64 bits: its mantissa, moved.
std::string wide_integer(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 53 bits, above 2^63
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 63));
  const auto shift = static_cast<std::size_t>(exponent - 63);
  std::string bytes(shift / 8, '\0');
  Int128 top = static_cast<Int128>(mantissa) << (shift % 8);
  for (int i = 0; i < 10; ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(top & 0xFF));
    top >>= 8;
  }
  const char filler = value < 0 ? '\xFF' : '\0';
  while (bytes.size() > 8 && bytes.back() == filler && ((bytes[bytes.size() - 2] ^ filler) & 0x80) == 0)
    bytes.pop_back();
  return bytes;
}

void append_float(std::string& out, double value, const void* itself) {
  if (std::isnan(value)) return append_bits(out, 'p', reinterpret_cast<std::uintptr_t>(itself));
  if (std::isinf(value) || value != std::floor(value))
    return append_bits(out, 'f', std::bit_cast<std::uint64_t>(value));
  if (std::fabs(value) < 0x1p63) return append_small(out, static_cast<std::int64_t>(value));
  append_integer(out, value == -0x1p63 ? std::string(7, '\0') + '\x80' : wide_integer(value));
}

void append_leaf(std::string& out, const ValueNode* node, const ValueTree& tree) {
  switch (node->kind) {
    case NodeKind::boolean:
      return append_small(out, node->flag ? 1 : 0);
    case NodeKind::integer:
      return append_small(out, node->integer);
    case NodeKind::big_integer:
      return append_integer(out, {node->text, node->size});
    case NodeKind::floating:
      return append_float(out, node->floating, node);
    case NodeKind::complex:
      if (node->complex[1] == 0) return append_float(out, node->complex[0], node);
      append_float(out += 'c', node->complex[0], node);
      return append_float(out, node->complex[1], node);
    case NodeKind::string:
      if (tree.type_name(node->type).starts_with("pathlib."))  // equal, whichever of its classes made them
        return append_text(out, 'P', 0, {node->text, node->size});
      return append_text(out, 's', tree.type_name(node->type) == "numpy.str_" ? 0 : node->type,
                         {node->text, node->size});
    case NodeKind::bytes:
      return append_text(out, 'b', 0, {node->text, node->size});
    case NodeKind::global:  // by the name it has today: Python 2 had others for some
      if (static_cast<Role>(node->role) == Role::untyped_storage)
        fail(Errc::unsupported, "pickle", "{} as a key, which is one class under several names",
             quoted(tree.type_name(node->type)));
      return append_bits(out, 'g', node->type);
    default:
      return append_bits(out, 'p', reinterpret_cast<std::uintptr_t>(node));
  }
}

}  // namespace

void append_key(std::string& out, Ref key, const ValueTree& tree, Budget& budget) {
  struct Level {
    const ValueNode* node;
    std::uint32_t next = 0;
  };

  std::vector<Level> levels;
  const auto append = [&](Ref value) {
    budget.step();
    if (value.is_none()) {
      out += 'N';
    } else if (value.is_bool()) {
      append_small(out, value.is_true() ? 1 : 0);
    } else if (value.is_small()) {
      append_small(out, value.small());
    } else if (value.node()->kind == NodeKind::tuple) {
      append_bits(out, '(', value.node()->size);
      levels.push_back({value.node()});
    } else if (value.node()->kind == NodeKind::set) {
      fail(Errc::unsupported, "pickle", "a frozenset as a key");
    } else {
      const NodeKind kind = value.node()->kind;
      if (kind == NodeKind::string || kind == NodeKind::bytes) budget.step(value.node()->size);
      append_leaf(out, value.node(), tree);
    }
  };
  append(key);
  while (!levels.empty()) {
    Level& top = levels.back();
    if (top.next == top.node->size) {
      levels.pop_back();
      continue;
    }
    const Ref part = top.node->refs[top.next++];
    append(part);
  }
}

}  // namespace ballast::torch
