// SPDX-License-Identifier: Apache-2.0
// The pickle machine, case by case. Files are written by hand here, opcode by opcode.
#include <gtest/gtest.h>

#include "ballast/error.h"
#include "formats/pickle_asm.h"

namespace ballast {
namespace {

using namespace testing::pickle;

Value value_of(const std::string& code, int protocol = 2) {
  return *read(whole(code, protocol)).tree;
}

TEST(Pickle, TextOpcodesOfProtocol0) {
  const Value value = *read("(dp0\nS'a'\np1\nI1\nsS'b'\np2\n(lp3\nF2.5\naNaI01\nasV\\u00e9\nL-7L\ns.").tree;
  EXPECT_EQ(value.at("a").as_int(), 1);
  EXPECT_EQ(value.at("b.0").as_float(), 2.5);
  EXPECT_TRUE(value.at("b.1").is_none());
  EXPECT_TRUE(value.at("b.2").as_bool());
  EXPECT_EQ(value.at("\xc3\xa9").as_int(), -7);
}

TEST(Pickle, FramedDictsOfProtocol4) {
  const std::string body = "}\x94(\x8c\x01"s + "a\x94K\x01\x8c\x01"s + "b\x94]\x94(K\x02K\x03" + "eu.";
  const Value value = *read("\x80\x04\x95"s + le(body.size(), 8) + body).tree;
  EXPECT_EQ(value.at("b.1").as_int(), 3);
}

TEST(Pickle, StackGlobalNamesAClass) {
  const Value value = value_of("\x8c\x05mynet\x8c\x03Net\x93)\x81", 4);
  EXPECT_EQ(value.type(), "mynet.Net");
  EXPECT_FALSE(value.is_global());
}

TEST(Pickle, RawUnicodeEscapesAreResolved) {
  EXPECT_EQ(value_of("Va\\u000ab\\u005c\\U0001f6a2\n").as_string(), "a\nb\\\xf0\x9f\x9a\xa2");
  EXPECT_EQ(value_of("Vcaf\xe9\n").as_string(), "caf\xc3\xa9");
  EXPECT_EQ(refusal_of("V\\u12\n"), Errc::bad_pickle);
}

TEST(Pickle, Long1IsSignedAndOfAnyWidth) {
  EXPECT_EQ(value_of("\x8a\x00"s).as_int(), 0);
  EXPECT_EQ(value_of("\x8a\x01\xff").as_int(), -1);
  EXPECT_EQ(value_of("\x8a\x02\x00\x80"s).as_int(), -32768);
  EXPECT_EQ(value_of("\x8a\x03\xff\x00\x00"s).as_int(), 255);
  EXPECT_EQ(value_of("\x8a\x0a\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00"s).as_int(), 5);
}

TEST(Pickle, IntegersBeyond64BitsStayWhatTheyAre) {
  const Value value = value_of("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"s);
  EXPECT_EQ(value.kind(), Kind::integer);
  EXPECT_EQ(value.as_decimal(), "18446744073709551616");
  EXPECT_FALSE(value.fits_int());
}

TEST(Pickle, JunkInTextNumbersIsRefused) {
  for (const char* const line : {"L12xL\n", "LL\n", "I1e3\n", "I0x10\n", "Fabc\n", "F1,5\n", "I\n"})
    EXPECT_EQ(refusal_of(line), Errc::bad_pickle) << line;
}

TEST(Pickle, ALengthBeyondTheFileIsRefusedBeforeAnythingIsAllocated) {
  EXPECT_EQ(refusal_of("X\xff\xff\xff\xff"
                       "ab"),
            Errc::truncated);
  EXPECT_EQ(refusal_of("\x8e"s + le(UINT64_MAX, 8) + "ab", 4), Errc::truncated);
  EXPECT_EQ(refusal_of("\x8b\xff\xff\xff\x7f"
                       "ab"),
            Errc::truncated);
}

TEST(Pickle, MemoSlotsBeyondWhatWasRunAreRefused) {
  EXPECT_EQ(refusal("\x80\x02]r\xff\xff\xff\xff."), Errc::memo_range);
  EXPECT_EQ(refusal_of("h\x05"), Errc::memo_range);
}

TEST(Pickle, TheMemoHoldsReferences) {
  // A dict is memoized empty, put under one name, filled, and fetched again under another.
  const Value value =
      value_of("}" + text("a") + "}q\x05s" + text("b") + "h\x05" + "sh\x05" + text("x") + "K\x07s0");
  EXPECT_EQ(value.at("a.x").as_int(), 7);
  EXPECT_TRUE(value.at("a").same_object(value.at("b")));
}

TEST(Pickle, DoublingByDupIsReadButNotUnfolded) {
  // 2^40 names for one tensor in a file of a few hundred bytes.
  std::string code = tensor(storage("0", "Float", 100), 0, tuple({2}), tuple({1}));
  for (int i = 0; i < 40; ++i) code += "2\x86";
  EXPECT_EQ(refusal(legacy(code, kFloats)), Errc::expansion_limit);
}

TEST(Pickle, NestingTo900LevelsIsReadAnd1500Refused) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, ']') + std::string(levels - 1, 'a');
  };
  EXPECT_EQ(value_of(nested(900)).size(), 1U);
  EXPECT_EQ(refusal_of(nested(1500)), Errc::too_deep);
  EXPECT_EQ(refusal_of(")" + std::string(200'000, '\x85')), Errc::too_deep);
}

TEST(Pickle, CyclesAreOrdinary) {
  const Value value = value_of(
      "]q\x02h\x02"
      "a");
  EXPECT_TRUE(value.element(0).same_object(value));
}

TEST(Pickle, MisusedMarksAreRefused) {
  for (const char* const code : {"(a", "]((a", "(R", "N(", "(o", "u", "(Nu", "]Ne", "t"})
    EXPECT_EQ(refusal_of(code), Errc::bad_pickle) << code;
}

TEST(Pickle, OperandsOfTheWrongKindAreRefused) {
  for (const std::string& code :
       {"]K\x01Ns"s, "}Na"s, "K\x05}b"s, "K\x05)R"s, "}]Ns"s, global("mynet", "f") + "]R"}) {
    EXPECT_EQ(refusal_of(code), Errc::type_mismatch) << code;
  }
}

TEST(Pickle, UnknownCallsBecomeInertObjects) {
  const Value value =
      value_of(global("mynet", "make") + "K\x01" + text("x") + "\x86R" + dict({{"lr", "K\x03"}}) + "b");
  EXPECT_EQ(value.kind(), Kind::object);
  EXPECT_EQ(value.type(), "mynet.make");
  EXPECT_EQ(value.args().element(1).as_string(), "x");
  EXPECT_EQ(value.at("lr").as_int(), 3);
}

TEST(Pickle, CallsThatCouldRunCodeAreRefusedByNameAndOffset) {
  const std::string code = dict({{"note", global("posix", "system") + text("echo") + "\x85R"}});
  try {
    static_cast<void>(read(whole(code)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::forbidden_global);
    EXPECT_NE(std::string(error.what()).find("posix.system"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("byte 13"), std::string::npos) << error.what();
  }
  const Checkpoint inert = read(whole(code), {.inert = true});
  EXPECT_EQ(inert.value("note").type(), "posix.system");
}

TEST(Pickle, RepeatedKeysKeepTheFirstPlaceAndTheLastValue) {
  const Value value = value_of("}(" + text("a") + "K\x01" + text("b") + "K\x02" + text("a") + "K\x03u");
  EXPECT_EQ(value.size(), 2U);
  EXPECT_EQ(value.key(0).as_string(), "a");
  EXPECT_EQ(value.at("a").as_int(), 3);
}

TEST(Pickle, IntegerKeysNameTensorsByTheirDecimal) {
  const std::string weight = tensor(storage("0", "Float", 100), 0, tuple({2}), tuple({1}));
  const Checkpoint checkpoint = read(legacy("}K\x07" + weight + "s" + integer(-3) + weight + "s", kFloats));
  EXPECT_EQ(checkpoint[0].name, "7");
  EXPECT_EQ(checkpoint[1].name, "-3");
}

TEST(Pickle, APersistentIdWithoutStoragesIsRefused) {
  EXPECT_EQ(refusal_of(tensor(storage("0", "Float", 4), 0, tuple({4}), tuple({1}))), Errc::missing_storage);
}

}  // namespace
}  // namespace ballast
