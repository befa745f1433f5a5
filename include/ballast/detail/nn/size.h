// SPDX-License-Identifier: Apache-2.0
// Sizes as PyTorch's layers take them: one number for all spatial dimensions, or one for each.
//
// Throws: nothing; Padding Errc::invalid_argument for a name other than "same" and "valid".
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)

namespace ballast::nn {

/// A number for each of N dimensions. Any number is taken: what makes no sense is said by the layer.
template <std::size_t N>
struct Size {
  std::array<std::int64_t, N> values{};  ///< one for each dimension

  /// The same number for all.
  constexpr Size(std::int64_t all) { values.fill(all); }  // Conv2d{3, 64, 7}

  /// One for each dimension.
  template <std::convertible_to<std::int64_t>... Each>

  requires(sizeof...(Each) == N && N > 1) constexpr Size(Each... each)
      : values{static_cast<std::int64_t>(each)...} {}  // {7, 7}

  /// Of dimension i, which is below N.
  constexpr std::int64_t operator[](std::size_t i) const { return values[i]; }

  /// As of a standard container.
  [[nodiscard]] constexpr auto begin() const { return values.begin(); }

  /// As of a standard container.
  [[nodiscard]] constexpr auto end() const { return values.end(); }

  friend constexpr bool operator==(const Size&, const Size&) = default;
};

/// A size, or none: the pool's kernel is meant.
template <std::size_t N>
struct Stride {
  Size<N> size = 1;    ///< when it is given
  bool given = false;  ///< else the kernel's is meant

  /// None.
  constexpr Stride() = default;

  /// The same number for all dimensions.
  constexpr Stride(std::int64_t all) : size(all), given(true) {}

  /// One for each dimension.
  constexpr Stride(const Size<N>& each) : size(each), given(true) {}

  /// One for each dimension.
  template <std::convertible_to<std::int64_t>... Each>

  requires(sizeof...(Each) == N && N > 1) constexpr Stride(Each... each) : size(each...), given(true) {}

  /// The kernel's where none was given.
  [[nodiscard]] constexpr Size<N> value_or(const Size<N>& kernel) const { return given ? size : kernel; }
};

/// Zeros (or what the padding mode says) on both sides, or by name: "same" keeps the size, "valid" is none.
template <std::size_t N>
struct Padding {
  Size<N> amount = 0;  ///< on both sides
  bool same = false;   ///< as much as keeps the size; `amount` is not looked at

  /// The same number for all dimensions.
  constexpr Padding(std::int64_t all) : amount(all) {}

  /// One for each dimension.
  constexpr Padding(const Size<N>& each) : amount(each) {}

  /// One for each dimension.
  template <std::convertible_to<std::int64_t>... Each>

  requires(sizeof...(Each) == N && N > 1) constexpr Padding(Each... each) : amount(each...) {}

  /// Errc::invalid_argument for any other name.
  template <std::size_t Length>
  Padding(const char (&name)[Length]) : same(is_same(name)) {}  // a literal, as 0 is a pointer too

 private:
  static bool is_same(std::string_view name);
};

/// What lies at the edges: PyTorch's "zeros", "reflect", "replicate" and "circular".
enum class PaddingMode : std::uint8_t { zeros, reflect, replicate, circular };

namespace detail {
[[nodiscard]] bool padding_is_same(std::string_view name);
}

template <std::size_t N>
bool Padding<N>::is_same(std::string_view name) {
  return detail::padding_is_same(name);
}

}  // namespace ballast::nn

#pragma GCC visibility pop
