// SPDX-License-Identifier: Apache-2.0
// JSON out, and the scanner's corners that no Safetensors header shows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/json_scanner.h"
#include "base/json_writer.h"

namespace ballast {
namespace {

TEST(JsonWriter, SeparatesMembersAndElements) {
  JsonWriter json;
  json.begin_object()
      .member("a", 1)
      .key("b")
      .begin_array()
      .value(true)
      .null()
      .begin_object()
      .end_object()
      .value("x")
      .end_array();
  json.key("c").begin_array().end_array().member("d", -2.5).end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[true,null,{},"x"],"c":[],"d":-2.5})");
}

TEST(JsonWriter, WritesNumbersThatReadBackTheSame) {
  JsonWriter json;
  json.begin_array()
      .value(std::numeric_limits<std::uint64_t>::max())
      .value(std::numeric_limits<std::int64_t>::min());
  json.value(0.1).value(1e300).value(std::nan("")).value(std::numeric_limits<double>::infinity()).end_array();
  EXPECT_EQ(json.text(), "[18446744073709551615,-9223372036854775808,0.1,1e+300,null,null]");
}

TEST(JsonWriter, WritesFloatsThatReadBackAsFloats) {
  JsonWriter json;  // as Python's json.dumps does
  json.begin_array().value(2.0).value(-0.0).value(0.0).value(1e16).value(123456789.0).end_array();
  EXPECT_EQ(json.text(), "[2.0,-0.0,0.0,1e+16,123456789.0]");
}

// What the scanner makes of one value that fills the text.
std::string scanned(std::string text) {
  const std::size_t size = text.size();
  text.resize(size + JsonScanner::kPadding, '\0');
  JsonScanner json({text.data(), size}, "t");
  try {
    std::string found;
    if (json.peek() == JsonScanner::Kind::string)
      found = "s:" + std::string(json.string());
    else if (json.peek() == JsonScanner::Kind::number)
      found = "n:" + std::string(json.number().text);
    else
      json.skip_value();
    json.finish();
    return found;
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
}

TEST(JsonScanner, UnescapesInPlace) {
  EXPECT_EQ(scanned(R"("")"), "s:");
  EXPECT_EQ(scanned(R"("\"\\\/\b\f\n\r\t")"), "s:\"\\/\b\f\n\r\t");
  EXPECT_EQ(scanned(R"("\u0041\u00e9\u20ac\ud83d\ude00z")"), "s:Aé€😀z");
  EXPECT_EQ(scanned(R"("a long string without any escape, longer than a few words")"),
            "s:a long string without any escape, longer than a few words");
  EXPECT_EQ(scanned("\"\xc3\xa9\\n\xc3\xa9\""), "s:é\né");
}

TEST(JsonScanner, RefusesBadStrings) {
  for (const char* text : {R"(")", R"("a)", R"("\)", R"("\")", R"("\x")", R"("\u12")", R"("\u12g4")",
                           R"("\ud83d")", R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")", R"("\ude00")",
                           "\"\n\"", "\"\x1f\"", "\"a\"b"}) {
    EXPECT_EQ(scanned(text), "bad-json") << text;
  }
}

TEST(JsonScanner, RefusesBadLiteralsAndStructure) {
  for (const char* text : {"",          " ",     "tru",
                           "truex",     "nul",   "nullnull",
                           "True",      "[1,]",  "[,1]",
                           "[1 2]",     "[1",    "{\"a\":1,}",
                           "{\"a\" 1}", "{a:1}", "{\"a\":1 \"b\":2}",
                           "{,}",       "[1]]",  "\xEF\xBB\xBF{}",
                           "// c\n1",   "'a'",   "NaN",
                           "[1\x0c]"}) {
    EXPECT_EQ(scanned(text), "bad-json") << text;
  }
  for (const char* text : {" [ 1 , { \"a\" : [ ] , \"b\" : { } } , null , true , false ] \r\n\t", "[]", "{}"})
    EXPECT_EQ(scanned(text), "") << text;
}

TEST(JsonScanner, TellsUnsignedNumbersFromOthers) {
  const auto number = [](std::string text) {
    const std::size_t size = text.size();
    text.resize(size + JsonScanner::kPadding, '\0');
    JsonScanner json({text.data(), size}, "t");
    const JsonScanner::Number found = json.number();
    return found.is_unsigned ? std::to_string(found.value) : "no";
  };
  EXPECT_EQ(number("0"), "0");
  EXPECT_EQ(number("9999999999999999999"), "9999999999999999999");
  EXPECT_EQ(number("10000000000000000000"), "10000000000000000000");
  EXPECT_EQ(number("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(number("18446744073709551616"), "no");
  EXPECT_EQ(number("28446744073709551615"), "no");
  EXPECT_EQ(number("100000000000000000000"), "no");
  for (const char* text : {"1.0", "1e0", "-1", "-0", "1E5"}) EXPECT_EQ(number(text), "no") << text;
}

}  // namespace
}  // namespace ballast
