// SPDX-License-Identifier: Apache-2.0
#include "containers/packed_codes.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ballast::packed {
namespace {

struct Masks {
  std::uint64_t one = 0;
  std::uint64_t two = 0;
  std::uint64_t four = 0;

  [[nodiscard]] std::uint64_t escapes() const noexcept { return one & two & four; }
};

Masks load(const std::byte* at) {
  return {load_le<std::uint64_t>(at), load_le<std::uint64_t>(at + 8), load_le<std::uint64_t>(at + 16)};
}

void store(const Masks& masks, std::byte* at) {
  std::memcpy(at, &masks.one, 8);
  std::memcpy(at + 8, &masks.two, 8);
  std::memcpy(at + 16, &masks.four, 8);
}

std::size_t take_escapes(std::uint64_t escaped, const std::byte* exponents, std::byte* escapes) {
  std::size_t count = 0;
  for (; escaped != 0; escaped &= escaped - 1)
    escapes[count++] = exponents[static_cast<std::size_t>(std::countr_zero(escaped))];
  return count;
}

std::size_t put_escapes(std::uint64_t escaped, const std::byte* escapes, std::byte* exponents) {
  std::size_t count = 0;
  for (; escaped != 0; escaped &= escaped - 1)
    exponents[static_cast<std::size_t>(std::countr_zero(escaped))] = escapes[count++];
  return count;
}

Masks encode_group(const std::byte* exponents, std::size_t count, std::uint8_t base) {
  Masks masks;
  for (std::size_t j = 0; j < count; ++j) {
    const auto distance = static_cast<std::uint8_t>(std::to_integer<std::uint8_t>(exponents[j]) - base);
    const std::uint64_t code = std::min<std::uint64_t>(distance, kCodes);
    masks.one |= (code & 1U) << j;
    masks.two |= ((code >> 1U) & 1U) << j;
    masks.four |= (code >> 2U) << j;
  }
  return masks;
}

void decode_group(const Masks& masks, std::uint8_t base, std::byte* exponents) {
  for (std::size_t j = 0; j < kGroup; ++j) {
    const std::uint64_t code =
        ((masks.one >> j) & 1U) | (((masks.two >> j) & 1U) << 1U) | (((masks.four >> j) & 1U) << 2U);
    exponents[j] = static_cast<std::byte>(base + code);
  }
}

std::size_t encode_scalar(std::span<const std::byte> exponents, std::uint8_t base, std::byte* masks,
                          std::byte* escapes) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < exponents.size(); i += kGroup, masks += kGroupBytes) {
    const Masks group = encode_group(exponents.data() + i, std::min(kGroup, exponents.size() - i), base);
    store(group, masks);
    found += take_escapes(group.escapes(), exponents.data() + i, escapes + found);
  }
  return found;
}

std::size_t decode_scalar(const std::byte* masks, std::size_t groups, std::uint8_t base,
                          const std::byte* escapes, std::byte* exponents) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < groups; ++i, exponents += kGroup) {
    const Masks group = load(masks + i * kGroupBytes);
    decode_group(group, base, exponents);
    used += put_escapes(group.escapes(), escapes + used, exponents);
  }
  return used;
}

std::size_t count_scalar(const std::byte* masks, std::size_t groups) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < groups; ++i)
    count += static_cast<std::size_t>(std::popcount(load(masks + i * kGroupBytes).escapes()));
  return count;
}

#if defined(__x86_64__)

#define BALLAST_AVX2 [[gnu::target("avx2,popcnt,bmi")]]
#define BALLAST_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,popcnt")]]

// vpcompressb and vpexpandb; processors with AVX-512 that lack them take the way of AVX2.
bool has_byte_expansion() noexcept {
  static const bool found = __builtin_cpu_supports("avx512vbmi2");
  return found;
}

BALLAST_AVX2 std::uint32_t bits_avx2(__m256i codes, int shift) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(codes, _mm_cvtsi32_si128(shift))));
}

BALLAST_AVX2 Masks encode_half_avx2(const std::byte* exponents, __m256i base) {
  const __m256i here = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(exponents));
  const __m256i codes = _mm256_min_epu8(_mm256_sub_epi8(here, base), _mm256_set1_epi8(kCodes));
  return {bits_avx2(codes, 7), bits_avx2(codes, 6), bits_avx2(codes, 5)};
}

BALLAST_AVX2 std::size_t encode_avx2(std::span<const std::byte> exponents, std::uint8_t base,
                                     std::byte* masks, std::byte* escapes) {
  const __m256i bases = _mm256_set1_epi8(static_cast<char>(base));
  std::size_t found = 0;
  std::size_t i = 0;
  for (; i + kGroup <= exponents.size(); i += kGroup, masks += kGroupBytes) {
    const Masks low = encode_half_avx2(exponents.data() + i, bases);
    const Masks high = encode_half_avx2(exponents.data() + i + 32, bases);
    const Masks group{low.one | high.one << 32U, low.two | high.two << 32U, low.four | high.four << 32U};
    store(group, masks);
    found += take_escapes(group.escapes(), exponents.data() + i, escapes + found);
  }
  return found + encode_scalar(exponents.subspan(i), base, masks, escapes + found);
}

// All ones in the bytes whose bit is set.
BALLAST_AVX2 __m256i spread_avx2(std::uint64_t mask) {
  const __m256i byte_of = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
                                           2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  const __m256i bytes =
      _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(mask))), byte_of);
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit_of), bit_of);
}

BALLAST_AVX2 void decode_half_avx2(const Masks& masks, __m256i base, std::byte* exponents) {
  const __m256i one = _mm256_and_si256(spread_avx2(masks.one), _mm256_set1_epi8(1));
  const __m256i two = _mm256_and_si256(spread_avx2(masks.two), _mm256_set1_epi8(2));
  const __m256i four = _mm256_and_si256(spread_avx2(masks.four), _mm256_set1_epi8(4));
  const __m256i codes = _mm256_or_si256(_mm256_or_si256(one, two), four);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(exponents), _mm256_add_epi8(base, codes));
}

BALLAST_AVX2 std::size_t decode_avx2(const std::byte* masks, std::size_t groups, std::uint8_t base,
                                     const std::byte* escapes, std::byte* exponents) {
  const __m256i bases = _mm256_set1_epi8(static_cast<char>(base));
  std::size_t used = 0;
  for (std::size_t i = 0; i < groups; ++i, exponents += kGroup) {
    const Masks group = load(masks + i * kGroupBytes);
    decode_half_avx2(group, bases, exponents);
    decode_half_avx2({group.one >> 32U, group.two >> 32U, group.four >> 32U}, bases, exponents + 32);
    used += put_escapes(group.escapes(), escapes + used, exponents);
  }
  return used;
}

BALLAST_AVX2 std::size_t count_avx2(const std::byte* masks, std::size_t groups) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < groups; ++i)
    count += static_cast<std::size_t>(_mm_popcnt_u64(load(masks + i * kGroupBytes).escapes()));
  return count;
}

BALLAST_AVX512 std::size_t encode_avx512(std::span<const std::byte> exponents, std::uint8_t base,
                                         std::byte* masks, std::byte* escapes) {
  const __m512i bases = _mm512_set1_epi8(static_cast<char>(base));
  std::size_t found = 0;
  for (std::size_t i = 0; i < exponents.size(); i += kGroup, masks += kGroupBytes) {
    const std::size_t left = exponents.size() - i;
    const __mmask64 there = left >= kGroup ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    const __m512i here = _mm512_maskz_loadu_epi8(there, exponents.data() + i);
    const __m512i codes =
        _mm512_maskz_min_epu8(there, _mm512_sub_epi8(here, bases), _mm512_set1_epi8(kCodes));
    const Masks group{_mm512_test_epi8_mask(codes, _mm512_set1_epi8(1)),
                      _mm512_test_epi8_mask(codes, _mm512_set1_epi8(2)),
                      _mm512_test_epi8_mask(codes, _mm512_set1_epi8(4))};
    store(group, masks);
    // Into a register and from there to memory: straight to memory it is several times slower.
    _mm512_storeu_si512(escapes + found, _mm512_maskz_compress_epi8(group.escapes(), here));
    found += static_cast<std::size_t>(_mm_popcnt_u64(group.escapes()));
  }
  return found;
}

BALLAST_AVX512 std::size_t decode_avx512(const std::byte* masks, std::size_t groups, std::uint8_t base,
                                         const std::byte* escapes, std::byte* exponents) {
  const __m512i bases = _mm512_set1_epi8(static_cast<char>(base));
  std::size_t used = 0;
  for (std::size_t i = 0; i < groups; ++i, exponents += kGroup) {
    const Masks group = load(masks + i * kGroupBytes);
    __m512i here = _mm512_mask_add_epi8(bases, group.one, bases, _mm512_set1_epi8(1));
    here = _mm512_mask_add_epi8(here, group.two, here, _mm512_set1_epi8(2));
    here = _mm512_mask_add_epi8(here, group.four, here, _mm512_set1_epi8(4));
    const __m512i next = _mm512_loadu_si512(escapes + used);
    _mm512_storeu_si512(exponents, _mm512_mask_expand_epi8(here, group.escapes(), next));
    used += static_cast<std::size_t>(_mm_popcnt_u64(group.escapes()));
  }
  return used;
}

#undef BALLAST_AVX2
#undef BALLAST_AVX512
#endif

}  // namespace

Base best_base(const Counts& exponents) {
  std::uint32_t all = 0;
  for (const std::uint32_t count : exponents) all += count;
  Base best{.value = 0, .escapes = all};
  for (std::size_t first = 0; first <= kMostBase; ++first) {
    std::uint32_t covered = 0;
    for (std::size_t e = first; e < first + kCodes; ++e) covered += exponents[e];
    if (all - covered < best.escapes) best = {static_cast<std::uint8_t>(first), all - covered};
  }
  return best;
}

std::size_t encode_codes(std::span<const std::byte> exponents, std::uint8_t base, std::byte* masks,
                         std::byte* escapes, Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512 && has_byte_expansion()) return encode_avx512(exponents, base, masks, escapes);
  if (isa != Isa::scalar) return encode_avx2(exponents, base, masks, escapes);
#endif
  static_cast<void>(isa);
  return encode_scalar(exponents, base, masks, escapes);
}

std::size_t decode_codes(const std::byte* masks, std::size_t groups, std::uint8_t base,
                         const std::byte* escapes, std::byte* exponents, Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512 && has_byte_expansion())
    return decode_avx512(masks, groups, base, escapes, exponents);
  if (isa != Isa::scalar) return decode_avx2(masks, groups, base, escapes, exponents);
#endif
  static_cast<void>(isa);
  return decode_scalar(masks, groups, base, escapes, exponents);
}

std::size_t count_escapes(const std::byte* masks, std::size_t groups, Isa isa) {
#if defined(__x86_64__)
  if (isa != Isa::scalar) return count_avx2(masks, groups);
#endif
  static_cast<void>(isa);
  return count_scalar(masks, groups);
}

}  // namespace ballast::packed
