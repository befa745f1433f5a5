// SPDX-License-Identifier: Apache-2.0
// Written once, and built for each kind of instructions: the attribute of the function it is inlined into
// decides.
#include "containers/packed_planes.h"

#include "base/bytes.h"
#include "base/instructions.h"

namespace ballast::packed {
namespace {

BALLAST_LOOP std::byte low(std::uint32_t value) {
  return static_cast<std::byte>(value & 0xFFU);
}

BALLAST_LOOP std::uint32_t wide(std::byte value) {
  return std::to_integer<std::uint32_t>(value);
}

// The sign beside the upper seven bits of the mantissa.
BALLAST_LOOP std::uint32_t sign_and_mantissa(std::uint32_t upper_half) {
  return ((upper_half >> 8U) & 0x80U) | (upper_half & 0x7FU);
}

BALLAST_LOOP std::uint32_t upper_half(std::uint32_t exponent, std::uint32_t rest) {
  return (exponent << 7U) | ((rest & 0x80U) << 8U) | (rest & 0x7FU);
}

BALLAST_LOOP void split_loop(Split how, const std::byte* __restrict raw, std::size_t count,
                             std::byte* __restrict e, std::byte* __restrict r0, std::byte* __restrict r1,
                             std::byte* __restrict r2) {
  switch (how) {
    case Split::bytes:
      std::memcpy(e, raw, count);
      break;
    case Split::f16:
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t word = load_le<std::uint16_t>(raw + 2 * i);
        e[i] = low(word >> 8U);
        r0[i] = low(word);
      }
      break;
    case Split::bf16:
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t word = load_le<std::uint16_t>(raw + 2 * i);
        e[i] = low(word >> 7U);
        r0[i] = low(sign_and_mantissa(word));
      }
      break;
    case Split::f32:
      for (std::size_t i = 0; i < count; ++i) {
        const auto word = load_le<std::uint32_t>(raw + 4 * i);
        e[i] = low(word >> 23U);
        r0[i] = low(sign_and_mantissa(word >> 16U));
        r1[i] = low(word >> 8U);
        r2[i] = low(word);
      }
      break;
  }
}

BALLAST_LOOP void join_loop(Split how, const std::byte* __restrict e, const std::byte* __restrict r0,
                            const std::byte* __restrict r1, const std::byte* __restrict r2, std::size_t count,
                            std::byte* __restrict raw) {
  const auto store = [&]<class T>(std::size_t i, T value) {
    std::memcpy(raw + sizeof value * i, &value, sizeof value);
  };
  switch (how) {
    case Split::bytes:
      std::memcpy(raw, e, count);
      break;
    case Split::f16:
      for (std::size_t i = 0; i < count; ++i)
        store(i, static_cast<std::uint16_t>((wide(e[i]) << 8U) | wide(r0[i])));
      break;
    case Split::bf16:
      for (std::size_t i = 0; i < count; ++i)
        store(i, static_cast<std::uint16_t>(upper_half(wide(e[i]), wide(r0[i]))));
      break;
    case Split::f32:
      for (std::size_t i = 0; i < count; ++i)
        store(i, (upper_half(wide(e[i]), wide(r0[i])) << 16U) | (wide(r1[i]) << 8U) | wide(r2[i]));
      break;
  }
}

using Splitter = void (*)(Split, const std::byte*, std::size_t, const Planes<std::byte>&);
using Joiner = void (*)(Split, const Planes<const std::byte>&, std::size_t, std::byte*);

void split_plain(Split how, const std::byte* raw, std::size_t count, const Planes<std::byte>& planes) {
  split_loop(how, raw, count, planes.exponents, planes.rest[0], planes.rest[1], planes.rest[2]);
}

void join_plain(Split how, const Planes<const std::byte>& planes, std::size_t count, std::byte* raw) {
  join_loop(how, planes.exponents, planes.rest[0], planes.rest[1], planes.rest[2], count, raw);
}

BALLAST_AVX2 void split_avx2(Split how, const std::byte* raw, std::size_t count,
                             const Planes<std::byte>& planes) {
  split_loop(how, raw, count, planes.exponents, planes.rest[0], planes.rest[1], planes.rest[2]);
}

BALLAST_AVX2 void join_avx2(Split how, const Planes<const std::byte>& planes, std::size_t count,
                            std::byte* raw) {
  join_loop(how, planes.exponents, planes.rest[0], planes.rest[1], planes.rest[2], count, raw);
}

BALLAST_AVX512 void split_avx512(Split how, const std::byte* raw, std::size_t count,
                                 const Planes<std::byte>& planes) {
  split_loop(how, raw, count, planes.exponents, planes.rest[0], planes.rest[1], planes.rest[2]);
}

BALLAST_AVX512 void join_avx512(Split how, const Planes<const std::byte>& planes, std::size_t count,
                                std::byte* raw) {
  join_loop(how, planes.exponents, planes.rest[0], planes.rest[1], planes.rest[2], count, raw);
}

}  // namespace

std::optional<Split> split_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::bf16:
      return Split::bf16;
    case DType::f32:
      return Split::f32;
    case DType::f16:
      return Split::f16;
    case DType::f8_e5m2:
    case DType::f8_e4m3:
    case DType::f8_e8m0:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
      return Split::bytes;
    default:
      return std::nullopt;
  }
}

void split(Split how, std::span<const std::byte> raw, const Planes<std::byte>& planes, Isa isa) {
  const Splitter work = isa == Isa::avx512 ? split_avx512 : isa == Isa::avx2 ? split_avx2 : split_plain;
  work(how, raw.data(), raw.size() / element_bytes(how), planes);
}

void join(Split how, const Planes<const std::byte>& planes, std::span<std::byte> raw, Isa isa) {
  const Joiner work = isa == Isa::avx512 ? join_avx512 : isa == Isa::avx2 ? join_avx2 : join_plain;
  work(how, planes, raw.size() / element_bytes(how), raw.data());
}

// Four counters for each byte: with one, equal bytes in a row would wait for each other.
Counts counts_of(std::span<const std::byte> plane) {
  std::array<Counts, 4> parts{};
  std::size_t i = 0;
  for (; i + 8 <= plane.size(); i += 8) {
    auto eight = load_le<std::uint64_t>(plane.data() + i);
    for (std::size_t k = 0; k < 8; ++k, eight >>= 8U) ++parts[k % 4][eight & 0xFFU];
  }
  for (; i < plane.size(); ++i) ++parts[0][std::to_integer<std::size_t>(plane[i])];
  Counts counts{};
  for (const Counts& part : parts)
    for (std::size_t value = 0; value < counts.size(); ++value) counts[value] += part[value];
  return counts;
}

}  // namespace ballast::packed
