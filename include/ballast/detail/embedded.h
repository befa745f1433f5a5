// SPDX-License-Identifier: Apache-2.0
// What the headers made by `ballast embed` (and CMake's ballast_embed) stand on: a record linked into the
// program, whose names, dtypes and sizes the compiler knows. Part of ballast::core.
//
// Throws: nothing; a name that is not there does not compile. Owns: nothing: the record is a part of the
// program, and its values live as long. Threads: every function may be called from several at once. Costs:
// none when the program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "ballast/dtype.h"
#include "ballast/record.h"

#pragma GCC visibility push(default)

namespace ballast::embedded {

/// A name as a template argument.
template <std::size_t N>
struct Name {
  char text[N]{};  ///< with the zero at its end

  /// From a literal.
  consteval Name(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }

  /// Without the zero.
  [[nodiscard]] constexpr std::string_view view() const { return {text, N - 1}; }
};

/// One tensor of the record.
struct Entry {
  std::string_view name;  ///< as in the record
  DType dtype;            ///< of its elements
  std::uint64_t numel;    ///< how many there are
  std::uint64_t bytes;    ///< that they take
  std::uint64_t offset;   ///< in the record
};

/// Its place among the entries, or their number when there is none.
[[nodiscard]] consteval std::size_t position(std::span<const Entry> entries, std::string_view name) {
  std::size_t at = 0;
  while (at < entries.size() && entries[at].name != name) ++at;
  return at;
}

/// The type of an element; std::byte for those C++ has no type for.
template <DType dtype>
consteval auto element() {
  if constexpr (dtype == DType::f32)
    return std::type_identity<float>{};
  else if constexpr (dtype == DType::f64)
    return std::type_identity<double>{};
  else if constexpr (dtype == DType::f16)
    return std::type_identity<Half>{};
  else if constexpr (dtype == DType::bf16)
    return std::type_identity<BFloat16>{};
  else if constexpr (dtype == DType::i8)
    return std::type_identity<std::int8_t>{};
  else if constexpr (dtype == DType::i16)
    return std::type_identity<std::int16_t>{};
  else if constexpr (dtype == DType::i32)
    return std::type_identity<std::int32_t>{};
  else if constexpr (dtype == DType::i64)
    return std::type_identity<std::int64_t>{};
  else if constexpr (dtype == DType::u8)
    return std::type_identity<std::uint8_t>{};
  else if constexpr (dtype == DType::u16)
    return std::type_identity<std::uint16_t>{};
  else if constexpr (dtype == DType::u32)
    return std::type_identity<std::uint32_t>{};
  else if constexpr (dtype == DType::u64)
    return std::type_identity<std::uint64_t>{};
  else
    return std::type_identity<std::byte>{};
}

/// The values of the tensor at `entries[at]`, as a span of their own type and number, valid as long as
/// `record`.
template <const auto& entries, std::size_t at>
[[nodiscard]] auto values(std::span<const std::byte> record) noexcept {
  constexpr Entry kEntry = entries[at];
  using Element = typename decltype(element<kEntry.dtype>())::type;
  constexpr std::size_t kCount = std::is_same_v<Element, std::byte> ? kEntry.bytes : kEntry.numel;
  return std::span<const Element, kCount>(reinterpret_cast<const Element*>(record.data() + kEntry.offset),
                                          kCount);
}

}  // namespace ballast::embedded

#pragma GCC visibility pop
