// SPDX-License-Identifier: Apache-2.0
// Every code of the narrow formats, and every half-way point between two of them, against reference_floats.h.
#include "tensor/cast.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <random>

#include "ballast/error.h"
#include "tensor/cast_support.h"
#include "tensor/half.h"
#include "tensor/reference_floats.h"

namespace ballast {
namespace {

using reference::Beyond;
using reference::Format;
using reference::formats;

std::vector<std::uint64_t> all_codes(DType dtype) {
  std::vector<std::uint64_t> codes(std::size_t{1} << info(dtype).bits);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = i;
  return codes;
}

template <class T>
std::vector<T> widened(Isa isa, DType from, std::span<const std::uint64_t> codes, DType to) {
  std::vector<T> values(codes.size());
  cast_elements_with(isa, from, packed(from, codes).data(), to, reinterpret_cast<std::byte*>(values.data()),
                     codes.size());
  return values;
}

TEST(Cast, LargestAndSmallestNumbersAreThoseOfTheSpecifications) {
  const auto check = [](DType dtype, std::uint64_t code, float expected) {
    EXPECT_EQ(widened<float>(Isa::scalar, dtype, std::vector{code}, DType::f32)[0], expected)
        << dtype << ' ' << code;
  };
  check(DType::f16, 0x7BFF, 65504.0F);
  check(DType::f16, 1, 0x1p-24F);
  check(DType::bf16, 0x7F7F, 0x1.FEp127F);
  check(DType::bf16, 1, 0x1p-133F);
  check(DType::f8_e4m3, 0x7E, 448.0F);
  check(DType::f8_e4m3, 1, 0x1p-9F);
  check(DType::f8_e5m2, 0x7B, 57344.0F);
  check(DType::f8_e5m2, 1, 0x1p-16F);
  check(DType::f8_e4m3fnuz, 0x7F, 240.0F);
  check(DType::f8_e4m3fnuz, 1, 0x1p-10F);
  check(DType::f8_e5m2fnuz, 0x7F, 57344.0F);
  check(DType::f8_e5m2fnuz, 1, 0x1p-17F);
  check(DType::f8_e8m0, 254, 0x1p127F);
  check(DType::f8_e8m0, 0, 0x1p-127F);
  check(DType::f6_e2m3, 0x1F, 7.5F);
  check(DType::f6_e2m3, 1, 0.125F);
  check(DType::f6_e3m2, 0x1F, 28.0F);
  check(DType::f6_e3m2, 1, 0.0625F);
  check(DType::f4, 7, 6.0F);
  check(DType::f4, 1, 0.5F);
}

TEST(Cast, EveryNarrowCodeWidensToItsExactValue) {
  for (const Isa isa : usable_isas()) {
    for (const Format& format : formats()) {
      const auto codes = all_codes(format.dtype);
      const auto singles = widened<float>(isa, format.dtype, codes, DType::f32);
      const auto doubles = widened<double>(isa, format.dtype, codes, DType::f64);
      for (std::uint32_t code = 0; code < codes.size(); ++code) {
        const long double expected = reference::value(format, code);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(singles[code]) && std::isnan(doubles[code])) << format.dtype << ' ' << code;
          continue;
        }
        ASSERT_EQ(singles[code], expected) << format.dtype << ' ' << code;
        ASSERT_EQ(doubles[code], expected) << format.dtype << ' ' << code;
        ASSERT_EQ(std::signbit(singles[code]), std::signbit(expected)) << format.dtype << ' ' << code;
      }
    }
    const auto scales = widened<float>(isa, DType::f8_e8m0, all_codes(DType::f8_e8m0), DType::f32);
    for (int code = 0; code < 255; ++code)
      ASSERT_EQ(scales[static_cast<std::size_t>(code)], std::ldexp(1.0F, code - 127));
    ASSERT_TRUE(std::isnan(scales[255]));
  }
}

// For each two neighbours of the format: both, the point half way, and that point's neighbours in T, with
// both signs.
template <class T>
std::vector<T> traps(const Format& format) {
  std::vector<T> found = {T{0},
                          -T{0},
                          std::numeric_limits<T>::infinity(),
                          -std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::max(),
                          std::numeric_limits<T>::denorm_min()};
  const auto infinity = std::numeric_limits<T>::infinity();
  for (std::uint32_t code = 0; code <= format.largest; ++code) {
    const long double low = reference::magnitude(format, code);
    const long double high = reference::magnitude(format, code + 1);
    for (const long double exact : {low, (low + high) / 2, high}) {
      const T middle = static_cast<T>(exact);
      if (std::isinf(middle)) continue;
      for (const T near : {std::nextafter(middle, -infinity), middle, std::nextafter(middle, infinity)}) {
        found.push_back(near);
        found.push_back(-near);
      }
    }
  }
  return found;
}

template <class T>
void expect_nearest(DType from) {
  for (const Isa isa : usable_isas()) {
    for (const Format& format : formats()) {
      const std::vector<T> values = traps<T>(format);
      const auto codes = cast_codes<T>(isa, from, values, format.dtype);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(codes[i], reference::nearest(format, values[i]))
            << from << " to " << format.dtype << ": " << std::hexfloat << values[i] << ", isa "
            << static_cast<int>(isa);
      }
    }
  }
}

TEST(Cast, RoundsFloatsToTheNearestAtEveryHalfWayPoint) {
  expect_nearest<float>(DType::f32);
}

TEST(Cast, RoundsDoublesOnceAtEveryHalfWayPoint) {
  expect_nearest<double>(DType::f64);
}

TEST(Cast, DoesNotRoundTwiceByWayOfFloat) {
  // Just above half way between two values, by less than a float can tell.
  const double above_one = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(half_of(above_one).bits, 0x3C01);
  EXPECT_EQ(bfloat16_of(1 + 0x1p-8 + 0x1p-40).bits, 0x3F81);
  EXPECT_EQ(half_of(0x1p-25 + 0x1p-70).bits, 1);
  EXPECT_EQ(half_of(0x1p-25).bits, 0);
  for (const Isa isa : usable_isas()) {
    const std::vector<double> doubles = {above_one, -above_one, 65520.0, 65519.999999999, 1e300, 0x1p-1070};
    EXPECT_THAT(cast_codes<double>(isa, DType::f64, doubles, DType::f16),
                testing::ElementsAre(0x3C01, 0xBC01, 0x7C00, 0x7BFF, 0x7C00, 0));
    const std::vector<std::int64_t> integers = {
        (std::int64_t{1} << 62) + (std::int64_t{1} << 53) + 1, INT64_MIN, -65519, 65520, 2049, 2051};
    EXPECT_THAT(cast_codes<std::int64_t>(isa, DType::i64, integers, DType::f16),
                testing::ElementsAre(0x7C00, 0xFC00, 0xFBFF, 0x7C00, 0x6800, 0x6802));
    const std::vector<std::uint64_t> naturals = {(std::uint64_t{1} << 63) + (std::uint64_t{1} << 55) + 1,
                                                 (std::uint64_t{1} << 63) + (std::uint64_t{1} << 55),
                                                 UINT64_MAX};
    EXPECT_THAT(cast_codes<std::uint64_t>(isa, DType::u64, naturals, DType::bf16),
                testing::ElementsAre(0x5F01, 0x5F00, 0x5F80));
  }
}

TEST(Cast, RoundsLargeIntegersOnceToEveryFormat) {
  std::mt19937_64 random(4);
  std::vector<std::int64_t> values;
  for (int width = 1; width < 64; ++width) {
    for (int i = 0; i < 40; ++i) {
      const auto value = static_cast<std::int64_t>(random() >> width);
      // Random ones, and ones a step away from a half-way point of some format.
      values.insert(values.end(), {value, -value, (value >> 20 << 20) + 1, -((value >> 40 << 40) - 1)});
    }
  }
  for (const Isa isa : usable_isas()) {
    for (const Format& format : formats()) {
      const auto codes = cast_codes<std::int64_t>(isa, DType::i64, values, format.dtype);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(codes[i], reference::nearest(format, static_cast<long double>(values[i])))
            << format.dtype << ' ' << values[i];
      }
    }
  }
}

TEST(Cast, NaNStaysNaNWhereThereIsOne) {
  for (const Isa isa : usable_isas()) {
    for (const Format& format : formats()) {
      for (const std::uint32_t bits : {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0xFFBFFFFFU, 0x7FFFFFFFU}) {
        const std::vector<float> values(5, std::bit_cast<float>(bits));
        const auto code =
            static_cast<std::uint32_t>(cast_codes<float>(isa, DType::f32, values, format.dtype)[3]);
        if (format.beyond == Beyond::largest)
          EXPECT_EQ(code, format.largest) << format.dtype;
        else
          EXPECT_TRUE(std::isnan(reference::value(format, code))) << format.dtype << ' ' << code;
      }
    }
  }
}

// Lines of float_cases.txt: PyTorch's results (make_float_cases.py).
TEST(Cast, AgreesWithPyTorchBitForBit) {
  std::ifstream file(BALLAST_TEST_DATA "/tensor/float_cases.txt");
  const DType targets[] = {DType::f16,     DType::bf16,        DType::f8_e5m2,    DType::f8_e4m3,
                           DType::f8_e8m0, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz};
  std::vector<float> inputs;
  std::vector<std::vector<std::uint64_t>> expected(std::size(targets));
  for (std::uint32_t bits = 0; file >> std::hex >> bits;) {
    inputs.push_back(std::bit_cast<float>(bits));
    for (auto& column : expected) file >> column.emplace_back();
  }
  ASSERT_GT(inputs.size(), 4000U);
  for (const Isa isa : usable_isas()) {
    for (std::size_t t = 0; t < std::size(targets); ++t) {
      const auto codes = cast_codes<float>(isa, DType::f32, inputs, targets[t]);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (std::isnan(inputs[i]) && info(targets[t]).bits == 16) continue;  // which NaN is not promised
        ASSERT_EQ(codes[i], expected[t][i]) << targets[t] << ' ' << std::hexfloat << inputs[i];
      }
    }
  }
}

TEST(Cast, RefusesWhatIsNotANumber) {
  std::byte bytes[16] = {};
  EXPECT_THROW(cast_elements(DType::c64, bytes, DType::f32, bytes + 8, 1), Error);
  EXPECT_THROW(cast_elements(DType::f32, bytes, DType::qu8, bytes + 8, 1), Error);
}

}  // namespace
}  // namespace ballast
