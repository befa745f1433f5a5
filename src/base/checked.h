// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers that came from a file: every result either is right or is seen to be wrong.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "base/fail.h"

namespace ballast {

__extension__ typedef __int128 Int128;  // sums of 64-bit products

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> try_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> try_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

template <std::integral T>
[[nodiscard]] T checked_add(T a, T b, const std::string& where) {
  if (const auto sum = try_add(a, b)) return *sum;
  fail(Errc::size_overflow, where, "{} + {} does not fit into {} bits", a, b, sizeof(T) * 8);
}

template <std::integral T>
[[nodiscard]] T checked_mul(T a, T b, const std::string& where) {
  if (const auto product = try_mul(a, b)) return *product;
  fail(Errc::size_overflow, where, "{} * {} does not fit into {} bits", a, b, sizeof(T) * 8);
}

template <std::integral To, std::integral From>
[[nodiscard]] To checked_cast(From value, const std::string& where) {
  if (std::in_range<To>(value)) return static_cast<To>(value);
  fail(Errc::size_overflow, where, "{} does not fit into {} bits", value, sizeof(To) * 8);
}

/// True when [offset, offset + length) lies inside [0, size); never overflows. The type is named only to test
/// it where all of it can be tried.
template <std::unsigned_integral T = std::uint64_t>
[[nodiscard]] constexpr bool fits(std::type_identity_t<T> offset, std::type_identity_t<T> length,
                                  std::type_identity_t<T> size) {
  return offset <= size && length <= static_cast<T>(size - offset);
}

}  // namespace ballast
