// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <vector>

#include "base/bytes.h"

namespace ballast {
namespace {

std::vector<std::byte> noise(std::size_t size) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

std::uint32_t by_zlib(std::uint32_t crc, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

TEST(Crc32, HasTheCheckValueOfItsDefinition) {
  EXPECT_EQ(crc32(0, as_bytes("123456789")), 0xCBF43926U);
  EXPECT_EQ(crc32(0, {}), 0U);
}

TEST(Crc32, EqualsZlibAtEveryLengthAndAlignment) {
  const auto bytes = noise(2048);
  for (std::size_t start = 0; start < 64; ++start) {
    for (std::size_t size = 0; size < 700; ++size) {
      const auto piece = std::span(bytes).subspan(start, size);
      ASSERT_EQ(crc32(0x12345678, piece), by_zlib(0x12345678, piece)) << start << ' ' << size;
      ASSERT_EQ(detail::crc32_tables(0x12345678, piece), by_zlib(0x12345678, piece)) << start << ' ' << size;
    }
  }
}

TEST(Crc32, EqualsZlibOnMoreThanOnePiece) {
  const auto bytes = noise(3'000'001);
  EXPECT_EQ(crc32(0, bytes), by_zlib(0, bytes));
  EXPECT_EQ(crc32(crc32(0, std::span(bytes).first(1'000'003)), std::span(bytes).subspan(1'000'003)),
            by_zlib(0, bytes));
}

TEST(Crc32, CombinesPiecesComputedApart) {
  const auto bytes = noise(100'000);
  for (const std::size_t cut : {0U, 1U, 77U, 65'536U, 99'999U, 100'000U}) {
    const auto first = std::span(bytes).first(cut);
    const auto second = std::span(bytes).subspan(cut);
    EXPECT_EQ(crc32_combine(crc32(0, first), crc32(0, second), second.size()), by_zlib(0, bytes)) << cut;
  }
}

}  // namespace
}  // namespace ballast
