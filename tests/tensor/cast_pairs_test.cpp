// SPDX-License-Identifier: Apache-2.0
// Every pair of real dtypes, by values: what an element is worth and what another dtype makes of a number are
// both worked out here.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "ballast/runtime.h"
#include "ballast/tensor.h"
#include "tensor/cast_support.h"
#include "tensor/reference_floats.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ballast {
namespace {

const reference::Format* format_of(DType dtype) {
  for (const reference::Format& format : reference::formats()) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

long double value_of(DType dtype, std::uint64_t code) {
  if (const auto* format = format_of(dtype))
    return reference::value(*format, static_cast<std::uint32_t>(code));
  const std::uint64_t sign = std::uint64_t{1} << (info(dtype).bits - 1);
  switch (info(dtype).kind) {
    case DTypeKind::boolean:
      return code == 0 ? 0 : 1;
    case DTypeKind::unsigned_integer:
      return static_cast<long double>(code);
    case DTypeKind::signed_integer:
      return static_cast<long double>(code) - ((code & sign) != 0 ? 2 * static_cast<long double>(sign) : 0);
    default:
      break;
  }
  if (dtype == DType::f64) return std::bit_cast<double>(code);
  if (dtype == DType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(code));
  return code == 255 ? std::numeric_limits<long double>::quiet_NaN()
                     : std::ldexp(1.0L, static_cast<int>(code) - 127);
}

// E8M0 by PyTorch's rule: the power of two below the value, or the next from half way on; the two smallest
// have no half way.
std::uint64_t scale_for(long double value) {
  const long double size = std::fabs(value);
  if (!(size < 0x1.8p127L)) return 255;
  if (size <= 0x1p-127L) return 0;
  if (size < 0x1p-126L) return 1;
  const int exponent = std::ilogb(size);
  return static_cast<std::uint64_t>(exponent + 127 + (size >= std::ldexp(1.5L, exponent) ? 1 : 0));
}

std::uint64_t integer_for(DType dtype, long double value) {
  const int bits = info(dtype).bits;
  const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
  const long double end = std::ldexp(1.0L, is_signed ? bits - 1 : bits);
  if (std::isnan(value)) return 0;
  const long double clamped = std::clamp(std::trunc(value), is_signed ? -end : 0.0L, end - 1);
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  return (clamped < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(-clamped)
                      : static_cast<std::uint64_t>(clamped)) &
         mask;
}

// Null when any NaN will do.
std::optional<std::uint64_t> expected_code(DType to, long double value) {
  const auto* format = format_of(to);
  if (to == DType::boolean) return std::isnan(value) || value != 0 ? 1 : 0;
  if (info(to).kind != DTypeKind::floating) return integer_for(to, value);
  if (to == DType::f8_e8m0) return scale_for(value);
  if (std::isnan(value))
    return format != nullptr && format->beyond == reference::Beyond::largest
               ? std::optional<std::uint64_t>(format->largest)
               : std::nullopt;
  if (format != nullptr) return reference::nearest(*format, value);
  if (to == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(static_cast<double>(value));
}

std::vector<std::uint64_t> sample_codes(DType dtype) {
  const int bits = info(dtype).bits;
  std::vector<std::uint64_t> codes;
  if (bits <= 8) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bits; ++code) codes.push_back(code);
    return codes;
  }
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  std::mt19937_64 random(5);
  for (int i = 0; i < 1500; ++i) codes.push_back(random() & mask);
  // Numbers of every size, with either sign, and the neighbours of the edges of the narrower integers.
  for (int i = 0; i < 600; ++i) codes.push_back(random() >> (random() % 64) & mask);
  for (int edge = 0; edge < bits; ++edge) {
    for (const std::uint64_t near : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      codes.push_back(((std::uint64_t{1} << edge) + near) & mask);
      codes.push_back((std::uint64_t{0} - ((std::uint64_t{1} << edge) + near)) & mask);
    }
  }
  if (!is_floating(dtype)) return codes;
  for (const double value : {0.5, 0.999, 1.5, 127.9, 128.0, 255.9, 256.0, 32767.9, 32768.0, 65535.9, 65536.0,
                             2147483647.5, 4294967295.5, 9.3e18, 1.9e19}) {
    for (const double sign : {1.0, -1.0}) {
      if (dtype == DType::f64)
        codes.push_back(std::bit_cast<std::uint64_t>(sign * value));
      else if (dtype == DType::f32)
        codes.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(sign * value)));
    }
  }
  return codes;
}

TEST(CastPairs, EveryRealDtypeBecomesEveryOtherByValue) {
  for (const DType from : real_dtypes()) {
    const auto codes = sample_codes(from);
    const auto in = packed(from, codes);
    for (const DType to : real_dtypes()) {
      if (from == to) continue;
      for (const Isa isa : usable_isas()) {
        const auto out = cast_bytes(isa, from, in, to, codes.size());
        for (std::size_t i = 0; i < codes.size(); ++i) {
          const long double value = value_of(from, codes[i]);
          const auto expected = expected_code(to, value);
          const std::uint64_t got = code_at(to, out, i);
          if (expected) {
            ASSERT_EQ(got, *expected) << from << " to " << to << ", code " << codes[i] << " = " << value
                                      << ", isa " << static_cast<int>(isa);
          } else {
            ASSERT_TRUE(std::isnan(value_of(to, got))) << from << " to " << to << ", code " << codes[i];
          }
        }
      }
    }
  }
}

TEST(CastPairs, PiecesAtOddAddressesAreThoseOfTheWhole) {
  std::mt19937 random(6);
  for (const DType from : real_dtypes()) {
    for (const DType to : real_dtypes()) {
      const std::size_t count = 1 + random() % 300;
      std::vector<std::byte> in((count * info(from).bits + 7) / 8 + 1);
      for (std::byte& byte : in) byte = static_cast<std::byte>(random());
      std::vector<std::byte> aligned(in.begin() + 1, in.end());
      const auto expected = cast_bytes(Isa::scalar, from, aligned, to, count);
      for (const Isa isa : usable_isas()) {
        std::vector<std::byte> out(expected.size() + 3, std::byte{0xA5});
        cast_elements_with(isa, from, in.data() + 1, to, out.data() + 1, count);
        EXPECT_EQ(out.front(), std::byte{0xA5});
        EXPECT_EQ(out.back(), std::byte{0xA5}) << "one byte too many: " << from << " to " << to;
        for (std::size_t i = 0; i < count; ++i) {
          const auto got = code_at(to, std::span(out).subspan(1), i);
          const auto plain = code_at(to, expected, i);
          ASSERT_TRUE(got == plain || (std::isnan(value_of(to, got)) && std::isnan(value_of(to, plain))))
              << from << " to " << to;
        }
      }
    }
  }
}

// Long enough for several threads and for writing past the cache, from outputs on and off a cache line's
// start.
TEST(CastPairs, LargeBuffersAreCastLikeSmallOnes) {
  const int threads = thread_count();
  set_thread_count(3);
  constexpr std::size_t kCount = (1U << 21U) + 77;
  std::vector<float> in(kCount);
  std::mt19937 random(7);
  for (float& value : in)
    value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 60) - 60);
  for (const DType to : {DType::f16, DType::bf16, DType::f64, DType::f8_e4m3, DType::f4}) {
    const std::size_t size = (kCount * info(to).bits + 7) / 8;
    for (const Isa isa : usable_isas()) {
      Tensor out = Tensor::zeros(DType::u8, {static_cast<std::int64_t>(size) + 64});
      for (const std::size_t offset : {std::size_t{0}, std::size_t{3}, std::size_t{24}}) {
        std::byte* start = out.mutable_data() + offset;
        cast_elements_with(isa, DType::f32, reinterpret_cast<const std::byte*>(in.data()), to, start, kCount);
        for (std::size_t first = 0; first < kCount; first += 40'000) {
          const std::size_t count = std::min<std::size_t>(160, kCount - first);
          const auto expected =
              cast_bytes(Isa::scalar, DType::f32, std::as_bytes(std::span(in)).subspan(first * 4), to, count);
          ASSERT_EQ(
              std::memcmp(start + first * info(to).bits / 8, expected.data(), count * info(to).bits / 8), 0)
              << to << ' ' << first;
        }
        const auto last = cast_bytes(Isa::scalar, DType::f32,
                                     std::as_bytes(std::span(in)).subspan((kCount - 5) * 4), to, 5);
        ASSERT_EQ(code_at(to, {start, size}, kCount - 1), code_at(to, last, 4));
      }
    }
  }
  set_thread_count(threads);
}

#if defined(__x86_64__)
TEST(CastPairs, TheCallersFloatingPointModesDoNotMatter) {
  const std::vector<double> values = {0x1p-140, 1 + 0x1.8p-24, -1 - 0x1.8p-24, 0x1.FFFFFFp-127};
  const auto expected = cast_codes<double>(Isa::scalar, DType::f64, values, DType::f32);
  EXPECT_EQ(expected[0], 0x200U);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U | 0x6000U);  // flush denormals, treat them as zero, round towards zero
  for (const Isa isa : usable_isas()) {
    const auto codes = cast_codes<double>(isa, DType::f64, values, DType::f32);
    EXPECT_EQ(codes, expected);
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & 0xE040U, 0xE040U);  // and they are as they were
}
#endif

}  // namespace
}  // namespace ballast
