// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gmock/gmock.h>

#include "ballast/error.h"
#include "base/bytes.h"

namespace ballast {
namespace {

template <class T>
void check_every_pair() {
  const int low = std::numeric_limits<T>::min();
  const int high = std::numeric_limits<T>::max();
  const auto expected = [&](int exact) {
    return exact >= low && exact <= high ? std::optional<T>(static_cast<T>(exact)) : std::nullopt;
  };
  for (int a = low; a <= high; ++a) {
    for (int b = low; b <= high; ++b) {
      ASSERT_EQ(try_add(static_cast<T>(a), static_cast<T>(b)), expected(a + b)) << a << " + " << b;
      ASSERT_EQ(try_mul(static_cast<T>(a), static_cast<T>(b)), expected(a * b)) << a << " * " << b;
    }
  }
}

TEST(Checked, AddsAndMultipliesLikeIntAtEveryPairOfBytes) {
  check_every_pair<std::uint8_t>();
  check_every_pair<std::int8_t>();
}

TEST(Checked, FitsIsWhatTheSumSaysAtEveryTripleOfBytes) {
  for (int offset = 0; offset < 256; ++offset) {
    for (int length = 0; length < 256; ++length) {
      for (int size = 0; size < 256; ++size) {
        const bool got =
            fits<std::uint8_t>(static_cast<std::uint8_t>(offset), static_cast<std::uint8_t>(length),
                               static_cast<std::uint8_t>(size));
        ASSERT_EQ(got, offset + length <= size) << offset << ' ' << length << ' ' << size;
      }
    }
  }
  EXPECT_FALSE(fits(UINT64_MAX, 1, UINT64_MAX));
  EXPECT_FALSE(fits(1, UINT64_MAX, UINT64_MAX));
  EXPECT_TRUE(fits(0, UINT64_MAX, UINT64_MAX));
}

TEST(Checked, OverflowIsAnErrorThatShowsTheNumbers) {
  EXPECT_EQ(checked_mul<std::int64_t>(3, 4, "here"), 12);
  try {
    static_cast<void>(checked_mul<std::uint64_t>(UINT64_MAX, 2, "here"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::size_overflow);
    EXPECT_STREQ(error.what(), "here: 18446744073709551615 * 2 does not fit into 64 bits");
  }
  EXPECT_THROW(static_cast<void>(checked_add<std::int64_t>(INT64_MAX, 1, "")), Error);
  EXPECT_THROW(static_cast<void>(checked_cast<std::uint32_t>(std::int64_t{-1}, "")), Error);
  EXPECT_THROW(static_cast<void>(checked_cast<std::int64_t>(UINT64_MAX, "")), Error);
  EXPECT_EQ(checked_cast<std::int8_t>(std::uint64_t{127}, ""), 127);
}

TEST(ByteReader, NeverLeavesItsBytes) {
  const std::array<std::byte, 5> bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                          std::byte{5}};
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    ByteReader reader{std::span(bytes).first(size), "file", 100};
    if (size < 4) {
      EXPECT_THROW(static_cast<void>(reader.take_le<std::uint32_t>()), Error);
      EXPECT_EQ(reader.position(), 0U);
    } else {
      EXPECT_EQ(reader.take_le<std::uint32_t>(), 0x04030201U);
      EXPECT_EQ(reader.file_offset(), 104U);
    }
    EXPECT_THROW(static_cast<void>(reader.take(UINT64_MAX)), Error);
    EXPECT_THROW(reader.seek(size + 1), Error);
    reader.seek(size);
    EXPECT_TRUE(reader.at_end());
    EXPECT_TRUE(reader.take(0).empty());
  }
}

}  // namespace
}  // namespace ballast
