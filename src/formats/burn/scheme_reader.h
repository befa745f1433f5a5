// SPDX-License-Identifier: Apache-2.0
// A scheme of quantization, from MessagePack or CBOR: all of it that is text, a number, a few numbers, or
// nothing.
#pragma once

#include <string>
#include <type_traits>

#include "base/fail.h"
#include "base/key_path.h"
#include "formats/burn/burn.h"
#include "formats/burn/cbor.h"
#include "formats/burn/msgpack.h"
#include "formats/burn/quantized.h"

namespace ballast::burn {

template <class Cursor>
[[nodiscard]] bool is_whole_number(typename Cursor::Kind kind) {
  if constexpr (std::is_same_v<Cursor, CborCursor>)
    return kind == Cursor::Kind::unsigned_integer;
  else
    return kind == Cursor::Kind::integer;
}

/// "32,1,1" of whole numbers, as blocks have them; "[…]" of anything else, or of more.
template <class Cursor>
[[nodiscard]] std::string read_numbers(Cursor& cursor, int depth) {
  constexpr std::uint64_t kMost = 8;
  const std::uint64_t count = cursor.array();
  bool are_numbers = count <= kMost;
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) {
    are_numbers = are_numbers && is_whole_number<Cursor>(cursor.peek());
    if (are_numbers)
      text += (i == 0 ? "" : ",") + std::to_string(cursor.unsigned_number());
    else
      cursor.skip(depth + 1);
  }
  return are_numbers ? text : "[…]";
}

template <class Cursor>
void read_scheme(Cursor& cursor, const std::string& path, int depth, QuantScheme& scheme, Budget& budget) {
  using Kind = typename Cursor::Kind;
  if (depth > kMaxDepth || path.size() > kLongestText)
    fail(Errc::too_deep, cursor.where(), "a scheme nested too deep");
  const Kind kind = cursor.peek();
  if (kind == Kind::map) {
    for (std::uint64_t count = cursor.map(); count > 0; --count) {
      const std::string key(cursor.text());
      read_scheme(cursor, key_path::joined(path, key), depth + 1, scheme, budget);
    }
  } else if (kind == Kind::text) {
    put(scheme, path, cursor.text(), cursor.where(), budget);
  } else if (is_whole_number<Cursor>(kind)) {
    put(scheme, path, std::to_string(cursor.unsigned_number()), cursor.where(), budget);
  } else if (kind == Kind::array) {
    put(scheme, path, read_numbers(cursor, depth), cursor.where(), budget);
  } else {
    put(scheme, path, "nil", cursor.where(), budget);
    cursor.skip(depth);
  }
}

}  // namespace ballast::burn
