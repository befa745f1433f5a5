// SPDX-License-Identifier: Apache-2.0
// Elements as planes of bytes: the exponents, which are few and far from random, and the rest, which is. For
// each kind of vector instructions, the same bytes from all (docs/formats/packed.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ballast/dtype.h"
#include "tensor/isa.h"

namespace ballast::packed {

/// How an element falls apart.
enum class Split : std::uint8_t { bytes, f16, bf16, f32 };

/// None: elements of this dtype are not packed.
[[nodiscard]] std::optional<Split> split_of(DType dtype) noexcept;

inline constexpr std::size_t kMostRest = 3;

/// Planes beside the exponents', a byte of each element.
[[nodiscard]] constexpr std::size_t rest_planes(Split split) noexcept {
  constexpr std::array<std::size_t, 4> kRest = {0, 1, 1, 3};
  return kRest[static_cast<std::size_t>(split)];
}

[[nodiscard]] constexpr std::size_t element_bytes(Split split) noexcept {
  return rest_planes(split) + 1;
}

template <class Byte>
struct Planes {
  Byte* exponents = nullptr;
  std::array<Byte*, kMostRest> rest = {};
};

void split(Split how, std::span<const std::byte> raw, const Planes<std::byte>& planes, Isa isa);
void join(Split how, const Planes<const std::byte>& planes, std::span<std::byte> raw, Isa isa);

/// How often each byte is there.
using Counts = std::array<std::uint32_t, 256>;
[[nodiscard]] Counts counts_of(std::span<const std::byte> plane);

}  // namespace ballast::packed
