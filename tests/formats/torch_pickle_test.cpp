// SPDX-License-Identifier: Apache-2.0
// The pickle machine and the meaning of tensors, case by case. Files are written by hand here, opcode by
// opcode; numbers of strided views are computed from their definition.
#include <gtest/gtest.h>

#include "ballast/error.h"
#include "formats/pickle_asm.h"

namespace ballast {
namespace {

using namespace testing::pickle;

Value value_of(const std::string& code, int protocol = 2) {
  return *read(whole(code, protocol)).tree;
}

Errc refusal(const std::string& file) {
  try {
    static_cast<void>(read(file));
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was refused";
  return Errc::io_error;
}

Errc refusal_of(const std::string& code, int protocol = 2) {
  return refusal(whole(code, protocol));
}

const std::vector<Blob> kFloats = {counted<float>("0", 100)};

std::string floats(std::int64_t offset, const std::string& sizes, const std::string& strides) {
  return legacy(dict({{"w", tensor(storage("0", "Float", 100), offset, sizes, strides)}}), kFloats);
}

// Row-major elements of a view over 0, 1, 2, … are the numbers of the elements it shows.
template <class T>
void expect_view(const Checkpoint& checkpoint, std::int64_t offset, std::vector<std::int64_t> sizes,
                 std::vector<std::int64_t> strides) {
  const Tensor tensor = checkpoint.tensor("w");
  EXPECT_EQ(tensor.shape(), Shape(sizes));
  std::vector<T> expected;
  std::vector<std::int64_t> at(sizes.size(), 0);
  const std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t element = offset;
    for (std::size_t d = 0; d < at.size(); ++d) element += at[d] * strides[d];
    expected.push_back(static_cast<T>(element));
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
  std::vector<T> got(expected.size());
  tensor.read(0, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, expected);
}

std::string numbers(const std::vector<std::int64_t>& values) {
  std::string code = "(";
  for (const std::int64_t value : values) code += integer(value);
  return code + "t";
}

void check_view(std::int64_t offset, const std::vector<std::int64_t>& sizes,
                const std::vector<std::int64_t>& strides) {
  expect_view<float>(read(floats(offset, numbers(sizes), numbers(strides))), offset, sizes, strides);
}

// The machine

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

// Tensors

TEST(TorchTensor, StridedViewsShowTheElementsTheyName) {
  check_view(0, {2, 3, 2, 2}, {12, 1, 6, 3});  // channels_last
  check_view(2, {3, 4}, {1, 3});               // transposed, with an offset
  check_view(1, {5}, {7});                     // every seventh
  check_view(0, {4, 3}, {1, 1});               // overlapping windows
  check_view(3, {1, 4, 1}, {999, 2, 12345});   // size-1 dims with odd strides
  check_view(5, {2, 3, 2}, {2, 0, 1});         // expanded in the middle
  check_view(100, {0}, {1});                   // nothing, at the very end
  check_view(42, {}, {});                      // one number
}

TEST(TorchTensor, StridedViewsOfOtherTypes) {
  const auto check = []<class T>(const char* type, T) {
    const std::string file =
        legacy(dict({{"w", tensor(storage("0", type, 100), 3, tuple({4, 5}), tuple({1, 4}))}}),
               {counted<T>("0", 100)});
    expect_view<T>(read(file), 3, {4, 5}, {1, 4});
  };
  check("Short", std::int16_t{});
  check("Byte", std::uint8_t{});
  check("Double", double{});
}

TEST(TorchTensor, NegativeStridesSizesAndOffsetsAreRefused) {
  EXPECT_EQ(refusal(floats(3, tuple({4}), tuple({-1}))), Errc::offset_out_of_range);
  EXPECT_EQ(refusal(floats(-1, tuple({4}), tuple({1}))), Errc::offset_out_of_range);
  EXPECT_EQ(refusal(floats(0, tuple({-4}), tuple({1}))), Errc::shape_mismatch);
}

TEST(TorchTensor, AsManyStridesAsSizes) {
  EXPECT_EQ(refusal(floats(0, tuple({2, 2}), tuple({1}))), Errc::size_mismatch);
}

TEST(TorchTensor, OverflowingSizesAreRefused) {
  EXPECT_EQ(refusal(floats(0, tuple({INT64_C(1) << 32, INT64_C(1) << 32}), tuple({0, 0}))),
            Errc::size_overflow);
  EXPECT_EQ(refusal(floats(0, tuple({INT64_C(1) << 62}), tuple({0}))), Errc::size_overflow);
}

TEST(TorchTensor, AViewBeyondItsStorageIsRefusedWithItsKey) {
  try {
    static_cast<void>(read(floats(91, tuple({10}), tuple({1}))));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::offset_out_of_range);
    EXPECT_NE(std::string(error.what()).find("near \"w\""), std::string::npos) << error.what();
  }
  check_view(90, {10}, {1});
}

TEST(TorchTensor, AStorageBeyondTheFileIsATruncatedFile) {
  std::string file = floats(0, tuple({10}), tuple({1}));
  file.pop_back();
  EXPECT_EQ(refusal(file), Errc::truncated);
}

TEST(TorchTensor, ExpandedViewsOfTerabytesAreRefused) {
  EXPECT_EQ(refusal(floats(0, tuple({1 << 21, 1 << 21}), tuple({0, 0}))), Errc::expanded_view);
  check_view(0, {8, 4}, {0, 1});
}

TEST(TorchTensor, StorageViewsOfOldFilesAreWindows) {
  const std::string view = "(" + text("7") + integer(10) + integer(20) + "t";
  const std::string file =
      legacy(dict({{"w", tensor(storage("0", "Float", 100, view), 5, tuple({3}), tuple({2}))}}), kFloats);
  expect_view<float>(read(file), 15, {3}, {2});
  const std::string beyond =
      legacy(dict({{"w", tensor(storage("0", "Float", 100, view), 0, tuple({21}), tuple({1}))}}), kFloats);
  EXPECT_EQ(refusal(beyond), Errc::offset_out_of_range);
}

TEST(TorchTensor, UntypedStoragesAreSeenThroughTheTensorsType) {
  const std::string store = "(" + text("storage") + global("torch.storage", "UntypedStorage") + text("0") +
                            text("cpu") + integer(200) + "NtQ";
  const std::string code = global("torch._utils", "_rebuild_tensor_v3") + "(" + store + integer(3) +
                           tuple({5}) + tuple({2}) + "\x89" + kHooks + global("torch", "uint16") + "tR";
  Blob blob = counted<std::uint16_t>("0", 100);
  blob.numel = 200;
  const Checkpoint checkpoint = read(legacy(dict({{"w", code}}), {blob}));
  EXPECT_EQ(checkpoint[0].dtype, DType::u16);
  expect_view<std::uint16_t>(checkpoint, 3, {5}, {2});
}

TEST(TorchTensor, BoolBytesStayAsTheyAre) {
  const std::string file = legacy(dict({{"w", tensor(storage("0", "Bool", 3), 0, tuple({3}), tuple({1}))}}),
                                  {{"0", 3, "\x00\x01\x02"s}});
  std::vector<std::byte> bytes(3);
  read(file).tensor("w").read(0, bytes);
  EXPECT_EQ(bytes[2], std::byte{2});
}

TEST(TorchTensor, ACountThatDisagreesWithThePickleSaysBothNumbers) {
  const std::string file =
      legacy(dict({{"w", tensor(storage("0", "Float", 10), 0, tuple({10}), tuple({1}))}}),
             {counted<float>("0", 11)});
  try {
    static_cast<void>(read(file));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::size_mismatch);
    EXPECT_NE(std::string(error.what()).find("holds 11 elements but the pickle declares 10"),
              std::string::npos)
        << error.what();
  }
}

TEST(TorchTensor, AStorageThatIsNotThereIsAnErrorAndNeverZeros) {
  EXPECT_EQ(refusal(legacy(dict({{"w", tensor(storage("1", "Float", 4), 0, tuple({4}), tuple({1}))}}), {})),
            Errc::missing_storage);
}

TEST(TorchTensor, QuantizedTensorsCarryTheirParameters) {
  const std::string code = global("torch._utils", "_rebuild_qtensor") + "(" + storage("0", "QInt8", 4) +
                           integer(0) + tuple({4}) + tuple({1}) + "(" + global("torch", "per_tensor_affine") +
                           "G\x3f\xe0\x00\x00\x00\x00\x00\x00"s + integer(-3) + "t\x89" + kHooks + "tR";
  const Checkpoint checkpoint = read(legacy(dict({{"w", code}}), {counted<std::int8_t>("0", 4)}));
  const auto quantization = checkpoint.value("w").tensor_value().quantization;
  ASSERT_TRUE(quantization.has_value());
  EXPECT_EQ(quantization->scale, 0.5);
  EXPECT_EQ(quantization->zero_point, -3);
  EXPECT_EQ(checkpoint[0].dtype, DType::qi8);
}

// Modules and objects

std::string weight() {
  return tensor(storage("0", "Float", 100), 0, tuple({2}), tuple({1}));
}

std::string module(std::string_view name, const std::string& parameters, const std::string& modules) {
  return global("net", name) + ")\x81" +
         dict({{"training", "\x88"}, {"_parameters", parameters}, {"_buffers", "}"}, {"_modules", modules}}) +
         "b";
}

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const Entry& entry : checkpoint) names.emplace_back(entry.name);
  return names;
}

TEST(TorchModule, IsReadAsItsStateDictInEveryProtocol) {
  const std::string root =
      module("Net", dict({{"scale", weight()}, {"none", "N"}}),
             dict({{"fc", module("Linear", dict({{"weight", weight()}}), "}")}, {"gone", "N"}}));
  for (const int protocol : {2, 4}) {
    const Checkpoint checkpoint = read(legacy(root, kFloats, protocol));
    EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"scale", "fc.weight"}));
    EXPECT_EQ(checkpoint.value("fc.weight").kind(), Kind::tensor);
    ASSERT_FALSE(checkpoint.notes.empty());
  }
}

TEST(TorchModule, SharedUnderTwoNamesHasBoth) {
  const std::string shared = module("Linear", dict({{"weight", weight()}}), "}") + "q\x20";
  const Checkpoint checkpoint =
      read(legacy(module("Net", "}", "}(" + text("a") + shared + text("b") + "h\x20u"), kFloats));
  EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"a.weight", "b.weight"}));
  EXPECT_TRUE(checkpoint.tensor("a.weight").same_view(checkpoint.tensor("b.weight")));
}

TEST(TorchModule, ObjectsWithTensorAttributesGiveThem) {
  const std::string bag = global("net", "Bag") + ")\x81" + dict({{"w", weight()}, {"n", "K\x03"}}) + "b";
  EXPECT_EQ(names_of(read(legacy(dict({{"bag", bag}}), kFloats))), (std::vector<std::string>{"bag.w"}));
}

TEST(TorchModule, TwoTensorsOfOneNameAreRefused) {
  const std::string other = tensor(storage("0", "Float", 100), 50, tuple({2}), tuple({1}));
  EXPECT_EQ(refusal(legacy(dict({{"a.b", weight()}, {"a", dict({{"b", other}})}}), kFloats)),
            Errc::duplicate_key);
  // The same tensor under the same name is only itself.
  EXPECT_EQ(read(legacy(dict({{"a.b", weight()}, {"a", dict({{"b", weight()}})}}), kFloats)).size(), 1U);
}

// Damage

TEST(TorchDamage, EveryCutAndEveryChangedByteIsReadOrRefused) {
  const std::string file = legacy(module("Net", dict({{"scale", weight()}}),
                                         dict({{"fc", module("Linear", dict({{"weight", weight()}}), "}")}})),
                                  {counted<float>("0", 100)});
  const auto survive = [](const std::string& bytes) {
    try {
      const Checkpoint checkpoint = read(bytes);
      for (const Entry& entry : checkpoint) {
        std::vector<std::byte> content(static_cast<std::size_t>(std::min<std::uint64_t>(entry.bytes, 4096)));
        const Tensor tensor = entry.tensor();
        if (tensor.has_data()) tensor.read(0, content);
      }
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(survive(file.substr(0, size))) << "cut at " << size;
  const std::size_t pickles = file.size() - 408;
  for (std::size_t at = 0; at < pickles; ++at) {
    for (int value = 0; value < 256; value += 5) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      static_cast<void>(survive(changed));
    }
  }
}

}  // namespace
}  // namespace ballast
