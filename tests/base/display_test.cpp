// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ballast/error.h"

namespace ballast {
namespace {

std::string utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

// The bidirectional controls of Unicode (UAX 9, table 2), and the two separators that break lines.
bool moves_text(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

bool is_surrogate(char32_t c) {
  return c >= 0xD800 && c <= 0xDFFF;
}

TEST(Display, EveryCodePointIsShownAsItselfOrAsAnEscape) {
  std::size_t escaped = 0;
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    const std::string text = utf8(c);
    const std::string shown = display(text);
    if (shown == text) {
      ASSERT_FALSE(is_control(c) || moves_text(c) || is_surrogate(c)) << static_cast<unsigned>(c);
      continue;
    }
    ++escaped;
    ASSERT_EQ(shown[0], '\\') << static_cast<unsigned>(c);
    for (const char byte : shown) ASSERT_TRUE(byte > 0x20 && byte < 0x7F) << static_cast<unsigned>(c);
    ASSERT_TRUE(c < 0x20 || c >= 0x7F) << "an ordinary character was escaped: " << shown;
  }
  // Letters, signs and emoji pass: what is escaped is a small part.
  EXPECT_LT(escaped, 2048U + 4096U + 250U);
  EXPECT_EQ(display("Gewicht_ä, 重み, вес, 🙂"), "Gewicht_ä, 重み, вес, 🙂");
}

TEST(Display, EveryPairOfBytesThatIsNotUtf8IsEscaped) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const bool valid_pair = first >= 0xC2 && first < 0xE0 && second >= 0x80 && second < 0xC0;
      const std::string shown = display(text);
      for (const char byte : shown) {
        const auto value = static_cast<unsigned char>(byte);
        ASSERT_FALSE(value < 0x20 || value == 0x7F) << first << ' ' << second;
        ASSERT_TRUE(value < 0x80 || valid_pair)
            << first << ' ' << second << ": a byte that is no text came through";
      }
      // U+0080..U+009F are controls that terminals obey.
      ASSERT_TRUE(first != 0xC2 || second >= 0xA0 || shown.find(static_cast<char>(0xC2)) == std::string::npos)
          << second;
    }
  }
  EXPECT_EQ(display("a\xFF"
                    "b"),
            "a\\xffb");
  EXPECT_EQ(display("\xED\xA0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(display("\xC0\xAF"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(display("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(display("\xE2\x82"), "\\xe2\\x82");                    // cut short
}

TEST(Display, LongTextIsCutAndItsLengthShown) {
  EXPECT_EQ(display(std::string(600, 'a')), std::string(512, 'a') + "… (600 bytes)");
  EXPECT_EQ(display("abcdef", 3), "abc… (6 bytes)");
  EXPECT_EQ(display("abc", 3), "abc");
  EXPECT_EQ(display("", 0), "");
  // Never cut inside a character.
  EXPECT_EQ(display("aéb", 2), "aé… (4 bytes)");
}

TEST(Display, QuotedNamesCannotEndTheirQuotes) {
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("\x1B[31m\n"), R"("\x1b[31m\n")");
}

}  // namespace
}  // namespace ballast
