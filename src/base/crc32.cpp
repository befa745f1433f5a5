// SPDX-License-Identifier: Apache-2.0
// A message is a polynomial over GF(2), its checksum the remainder by P. Multiplying 16 bytes by x^n mod P,
// with n the distance to bytes further on, lets them be added there without changing the remainder
// ("folding"); carry-less multiplication does that for 16 bytes in two instructions. What is left after
// folding, 16 bytes, goes through the tables. The constants are bit-reversed x^n mod P, shifted left by one
// because the product of two reversed numbers comes out one bit too low.
#include "base/crc32.h"

#include <array>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ballast {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;

using Tables = std::array<std::array<std::uint32_t, 256>, 16>;

// tables[i][b]: byte b followed by i zero bytes.
constexpr Tables kTables = [] {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (std::size_t i = 1; i < tables.size(); ++i) {
    for (std::size_t b = 0; b < 256; ++b)
      tables[i][b] = (tables[i - 1][b] >> 8U) ^ tables[0][tables[i - 1][b] & 0xFFU];
  }
  return tables;
}();

// Without the inversion at both ends.
std::uint32_t update(std::uint32_t crc, const std::byte* bytes, std::size_t size) noexcept {
  for (; size >= 16; bytes += 16, size -= 16) {
    const std::uint64_t low = load_le<std::uint64_t>(bytes) ^ crc;
    const auto high = load_le<std::uint64_t>(bytes + 8);
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      crc ^= kTables[15 - i][(low >> (8 * i)) & 0xFFU] ^ kTables[7 - i][(high >> (8 * i)) & 0xFFU];
    }
  }
  for (; size > 0; ++bytes, --size)
    crc = (crc >> 8U) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(*bytes)) & 0xFFU];
  return crc;
}

#if defined(__x86_64__)

// x^(n+32) and x^(n-32) mod P for a fold over n bits.
struct Fold {
  std::int64_t low;
  std::int64_t high;
};

constexpr Fold kFold2048{0x11542778A, 0x1322D1430};
constexpr Fold kFold512{0x154442BD4, 0x1C6E41596};
constexpr Fold kFold128{0x1751997D0, 0x0CCAA009E};

__attribute__((target("pclmul"))) inline __m128i fold(__m128i value, __m128i constants, __m128i onto) {
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(value, constants, 0x00),
                                     _mm_clmulepi64_si128(value, constants, 0x11)),
                       onto);
}

__attribute__((target("pclmul"))) inline __m128i load16(const std::byte* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

struct CrcLanes {  // std::array would drop the vectors' alignment
  __m128i at[4];
};

// Four neighbouring 16-byte values, then whole 16-byte blocks, then the rest.
__attribute__((target("pclmul"))) std::uint32_t finish(const CrcLanes& lanes, const std::byte* bytes,
                                                       std::size_t size) {
  const __m128i constants = _mm_set_epi64x(kFold128.high, kFold128.low);
  __m128i value = fold(lanes.at[0], constants, lanes.at[1]);
  value = fold(value, constants, lanes.at[2]);
  value = fold(value, constants, lanes.at[3]);
  for (; size >= 16; bytes += 16, size -= 16) value = fold(value, constants, load16(bytes));
  std::array<std::byte, 16> left{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(left.data()), value);
  return update(update(0, left.data(), left.size()), bytes, size);
}

// At least 64 bytes.
__attribute__((target("pclmul"))) std::uint32_t update_clmul(std::uint32_t crc, const std::byte* bytes,
                                                             std::size_t size) {
  const __m128i constants = _mm_set_epi64x(kFold512.high, kFold512.low);
  CrcLanes lanes = {{load16(bytes), load16(bytes + 16), load16(bytes + 32), load16(bytes + 48)}};
  lanes.at[0] = _mm_xor_si128(lanes.at[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  for (bytes += 64, size -= 64; size >= 64; bytes += 64, size -= 64) {
    for (std::size_t i = 0; i < 4; ++i) lanes.at[i] = fold(lanes.at[i], constants, load16(bytes + 16 * i));
  }
  return finish(lanes, bytes, size);
}

__attribute__((target("avx512f,vpclmulqdq"))) inline __m512i fold(__m512i value, __m512i constants,
                                                                  __m512i onto) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, constants, 0x00),
                                   _mm512_clmulepi64_epi128(value, constants, 0x11), onto, kXorOfThree);
}

// At least 256 bytes.
__attribute__((target("avx512f,vpclmulqdq,pclmul"))) std::uint32_t update_wide(std::uint32_t crc,
                                                                               const std::byte* bytes,
                                                                               std::size_t size) {
  __m512i constants = _mm512_set4_epi64(kFold2048.high, kFold2048.low, kFold2048.high, kFold2048.low);
  __m512i lanes[4];
  for (std::size_t i = 0; i < 4; ++i) lanes[i] = _mm512_loadu_si512(bytes + 64 * i);
  lanes[0] = _mm512_xor_si512(lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  for (bytes += 256, size -= 256; size >= 256; bytes += 256, size -= 256) {
    for (std::size_t i = 0; i < 4; ++i)
      lanes[i] = fold(lanes[i], constants, _mm512_loadu_si512(bytes + 64 * i));
  }
  constants = _mm512_set4_epi64(kFold512.high, kFold512.low, kFold512.high, kFold512.low);
  __m512i value = fold(lanes[0], constants, lanes[1]);
  value = fold(value, constants, lanes[2]);
  value = fold(value, constants, lanes[3]);
  for (; size >= 64; bytes += 64, size -= 64) value = fold(value, constants, _mm512_loadu_si512(bytes));
  CrcLanes narrow;
  _mm512_storeu_si512(narrow.at, value);
  return finish(narrow, bytes, size);
}

enum class Machine : std::uint8_t { plain, clmul, wide };

Machine machine() noexcept {
  static const Machine found = [] {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("pclmul")) return Machine::plain;
    return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") ? Machine::wide
                                                                                     : Machine::clmul;
  }();
  return found;
}

std::uint32_t update_fast(std::uint32_t crc, const std::byte* bytes, std::size_t size) noexcept {
  const Machine found = machine();
  if (found == Machine::wide && size >= 256) return update_wide(crc, bytes, size);
  if (found != Machine::plain && size >= 64) return update_clmul(crc, bytes, size);
  return update(crc, bytes, size);
}

#else

std::uint32_t update_fast(std::uint32_t crc, const std::byte* bytes, std::size_t size) noexcept {
  return update(crc, bytes, size);
}

#endif

// Product mod P of two reversed polynomials: the highest bit is x^0.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1U) {
    if ((a & 0x80000000U) != 0) product ^= b;
    b = (b >> 1U) ^ ((b & 1U) != 0 ? kPolynomial : 0);
  }
  return product;
}

}  // namespace

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  return ~update_fast(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept {
  std::uint32_t power = 0x00800000;  // x^8: one byte further
  for (; second_size != 0; second_size >>= 1U) {
    if ((second_size & 1U) != 0) first = multiply(power, first);
    power = multiply(power, power);
  }
  return first ^ second;
}

std::uint32_t detail::crc32_tables(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  return ~update(~crc, bytes.data(), bytes.size());
}

}  // namespace ballast
