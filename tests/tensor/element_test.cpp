// SPDX-License-Identifier: Apache-2.0
// Single values and short lists of them, in and out of tensors.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ballast/error.h"
#include "ballast/tensor.h"
#include "base/error_of.h"
#include "tensor/half.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
class Values : public testing::Test {};

using Types = testing::Types<bool, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                             std::int32_t, std::uint64_t, std::int64_t, Half, BFloat16, float, double>;
TYPED_TEST_SUITE(Values, Types, );

template <class T>
T value_of(int number) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T::from(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

TYPED_TEST(Values, FromEveryKindOfListAreTheSame) {
  using T = TypeParam;
  const T a = value_of<T>(0);
  const T b = value_of<T>(1);
  std::array<T, 4> array{a, b, b, a};
  const Tensor expected = Tensor::from<T>({a, b, b, a}, {2, 2});
  EXPECT_EQ(expected.dtype(), dtype_of<T>);
  EXPECT_THAT(expected.template span<T>(), ElementsAre(a, b, b, a));
  const Tensor made[] = {
      Tensor::from({a, b, b, a}, {2, 2}), Tensor::from(array, {2, 2}), Tensor::from(std::span(array), {2, 2}),
      Tensor::from(std::span<const T>(array), {2, 2}), Tensor::from(std::vector<T>{a, b, b, a}, {2, 2})};
  for (const Tensor& tensor : made) {
    EXPECT_EQ(tensor.dtype(), dtype_of<T>);
    EXPECT_THAT(tensor.template span<T>(), ElementsAre(a, b, b, a));
  }
}

TYPED_TEST(Values, OfAnotherNumberThanTheShapeHasAreRefusedWithBothNumbers) {
  const TypeParam one = value_of<TypeParam>(1);
  try {
    static_cast<void>(Tensor::from(std::vector<TypeParam>{one, one, one}, {2, 2}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::size_mismatch);
    EXPECT_THAT(error.what(), HasSubstr("has 4 elements, 3 were given"));
  }
}

TYPED_TEST(Values, AreTheOnlyElementAgain) {
  const TypeParam one = value_of<TypeParam>(1);
  const Tensor tensor = Tensor::from({one}, {1, 1});
  EXPECT_EQ(tensor.template item<TypeParam>(), one);
  EXPECT_EQ(tensor.template item<float>(), 1.0F);
  EXPECT_EQ(tensor.template item<std::int64_t>(), 1);
  EXPECT_EQ(tensor.item(), 1.0);
}

TEST(Element, AHugeShapeIsRefusedBeforeItIsAllocated) {
  EXPECT_EQ(code_of([] { static_cast<void>(Tensor::from({1.0F}, {std::int64_t{1} << 50})); }),
            Errc::size_mismatch);
}

TEST(Element, FloatsBecomeTheDtypeThatIsAskedFor) {
  const std::vector<float> values{1.0F, -2.5F, 65520.0F, 1e-8F};
  const Tensor half = Tensor::from(values, {4}, DType::f16);
  const Tensor brain = Tensor::from({1.0F, -2.5F, 65520.0F, 1e-8F}, {4}, DType::bf16);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(half.span<Half>()[i], half_of(values[i]));
    EXPECT_EQ(brain.span<BFloat16>()[i], bfloat16_of(values[i]));
  }
}

TEST(Element, EveryHalfIsItsFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const BFloat16 brain{static_cast<std::uint16_t>(bits)};
    const float value = Tensor::from({half}, {}).to(DType::f32).span<float>()[0];
    const float other = Tensor::from({brain}, {}).to(DType::f32).span<float>()[0];
    ASSERT_EQ(std::isnan(static_cast<float>(half)), std::isnan(value));
    ASSERT_EQ(std::isnan(static_cast<float>(brain)), std::isnan(other));
    if (!std::isnan(value)) {
      ASSERT_EQ(static_cast<float>(half), value);
      ASSERT_EQ(Half::from(value), half);
      ASSERT_EQ(Tensor::from({half}, {}).item<float>(), value);
    }
    if (!std::isnan(other)) {
      ASSERT_EQ(static_cast<float>(brain), other);
      ASSERT_EQ(BFloat16::from(other), brain);
    }
  }
}

// Against the C++ conversions, which are defined exactly where the value fits.
template <class To, class From>
void expect_item(From value) {
  const Tensor tensor = Tensor::from({value}, {});
  const auto exact = static_cast<long double>(value);
  const bool fits = std::trunc(exact) >= static_cast<long double>(std::numeric_limits<To>::min()) &&
                    std::trunc(exact) <= static_cast<long double>(std::numeric_limits<To>::max());
  if (fits)
    EXPECT_EQ(tensor.item<To>(), static_cast<To>(value)) << value;
  else
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor.item<To>()); }), Errc::not_representable) << value;
}

template <class From>
void expect_items(From value) {
  expect_item<std::uint8_t>(value);
  expect_item<std::int8_t>(value);
  expect_item<std::uint16_t>(value);
  expect_item<std::int16_t>(value);
  expect_item<std::uint32_t>(value);
  expect_item<std::int32_t>(value);
  expect_item<std::uint64_t>(value);
  expect_item<std::int64_t>(value);
}

TEST(Element, AnIntegerIsReadExactlyOrRefused) {
  for (const double value : {0.0,
                             1.9,
                             -0.9,
                             -1.0,
                             127.9,
                             128.0,
                             -128.9,
                             -129.0,
                             255.5,
                             256.0,
                             65535.0,
                             65536.0,
                             2147483647.0,
                             2147483648.0,
                             -2147483649.0,
                             4294967296.0,
                             9223372036854775808.0,
                             -9223372036854775808.0,
                             18446744073709551616.0,
                             1e300,
                             -1e300})
    expect_items(value);
  for (const std::int64_t value :
       {INT64_MIN, INT64_MIN + 1, std::int64_t{-129}, std::int64_t{-1}, std::int64_t{255}, std::int64_t{256},
        (std::int64_t{1} << 53) + 1, INT64_MAX})
    expect_items(value);
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1} << 63U, UINT64_MAX})
    expect_items(value);
  for (const double value : {double{NAN}, HUGE_VAL, -HUGE_VAL})
    EXPECT_EQ(code_of([&] { static_cast<void>(Tensor::from({value}, {}).item<std::int64_t>()); }),
              Errc::not_representable);
}

TEST(Element, AFloatIsRoundedButNeverBecomesInfinite) {
  EXPECT_EQ(Tensor::from({0.1}, {}).item<float>(), 0.1F);
  EXPECT_EQ(code_of([] { static_cast<void>(Tensor::from({1e300}, {}).item<float>()); }),
            Errc::not_representable);
  EXPECT_EQ(Tensor::from({HUGE_VAL}, {}).item<float>(), HUGE_VALF);
  EXPECT_TRUE(std::isnan(Tensor::from({double{NAN}}, {}).item<float>()));
  EXPECT_EQ(code_of([] {
              static_cast<void>(Tensor::from({1.0F, 2.0F}, {2}).item<float>());
            }),
            Errc::shape_mismatch);
}

TEST(Element, ABoolOfAnyByteIsABool) {
  const std::uint8_t two = 2;
  const Tensor tensor = Tensor::contiguous_view(DType::boolean, {}, Storage::borrow(&two, 1));
  EXPECT_TRUE(tensor.item<bool>());
}

TEST(Element, APositionIsAViewOfWhatIsThere) {
  Tensor tensor = Tensor::from({0, 1, 2, 3, 4, 5}, {3, 2});
  for (std::int64_t i = -3; i < 3; ++i) {
    const Tensor row = tensor[i];
    EXPECT_EQ(row.shape(), Shape{2});
    for (std::int64_t j = -2; j < 2; ++j) EXPECT_EQ(row[j].item<int>(), (i + 3) % 3 * 2 + (j + 2) % 2);
  }
  tensor.mutable_span<int>()[3] = 40;
  EXPECT_EQ(tensor[1][-1].item<int>(), 40);
  EXPECT_EQ(tensor.t()[1][1].item<int>(), 40);
  for (const std::int64_t outside : {std::int64_t{3}, std::int64_t{-4}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor[outside]); }), Errc::offset_out_of_range);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor[0][0][0]); }), Errc::shape_mismatch);
}

TEST(Element, SizesAreAskedForFromBothEnds) {
  const Tensor tensor(DType::f32, {4, 5, 6});
  for (std::int64_t dim = -3; dim < 3; ++dim) EXPECT_EQ(tensor.size(dim), 4 + (dim + 3) % 3);
  for (const std::int64_t outside : {std::int64_t{3}, std::int64_t{-4}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor.size(outside)); }), Errc::shape_mismatch);
}

TEST(Element, OfLongAndLongLongIsI64) {
  EXPECT_EQ(dtype_of<long>, DType::i64);
  EXPECT_EQ(dtype_of<long long>, DType::i64);
  EXPECT_EQ(dtype_of<unsigned long long>, DType::u64);
  EXPECT_EQ(Tensor::from({1LL << 40}, {1}).item<long long>(), 1LL << 40);
}

TEST(Element, AnErrorSaysEveryDigit) {
  const Tensor beyond_double = Tensor::from({std::int64_t{9007199254740993}}, {1});
  EXPECT_THAT(error_text([&] { static_cast<void>(beyond_double.item<int>()); }),
              testing::HasSubstr("holds 9007199254740993, which I32 does not have"));
}

}  // namespace
}  // namespace ballast
