// SPDX-License-Identifier: Apache-2.0
// Burn's records, put together field by field: what stands twice, what stands very often, arrays of this and
// that.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "ballast/io.h"
#include "base/error_of.h"
#include "base/scratch.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

using namespace std::string_literals;
using Members = std::vector<std::pair<std::string, std::string>>;

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xFFU);
  return text;
}

// One of MessagePack's and CBOR's spellings of each thing, with a length of 32 bits.
struct Spelling {
  char text_code, map_code, array_code;
  char short_text;  // and the length

  [[nodiscard]] std::string text(const std::string& value) const {
    return text_code + big_endian(value.size(), 4) + value;
  }

  [[nodiscard]] std::string map(const Members& members) const {
    std::string out = map_code + big_endian(members.size(), 4);
    for (const auto& [key, value] : members) out += text(key) + value;
    return out;
  }

  [[nodiscard]] std::string array(const std::vector<std::string>& values) const {
    std::string out = array_code + big_endian(values.size(), 4);
    for (const std::string& value : values) out += value;
    return out;
  }
};

constexpr Spelling kMpk = {'\xDB', '\xDF', '\xDD', '\xA0'};
constexpr Spelling kCbor = {'\x7A', '\xBA', '\x9A', '\x60'};

// With short names, as Burn begins it.
std::string mpk_of(const Members& record) {
  std::string out(1, static_cast<char>(0x80 + record.size()));
  for (const auto& [key, value] : record)
    out += static_cast<char>(static_cast<unsigned char>(kMpk.short_text) + key.size()) + key + value;
  return out;
}

const Members kMpkTensor = {{"bytes", "\xC6"s + big_endian(4, 4) + "abcd"},
                            {"shape", kMpk.array({"\x04"})},
                            {"dtype", kMpk.text("U8")}};

std::string bpk_of(const Members& metadata) {
  std::string map = kCbor.map(metadata);
  std::string size = big_endian(map.size(), 4);
  std::string file = "NRUB\1\0"s + std::string(size.rbegin(), size.rend()) + map;
  file.resize((file.size() + 255) / 256 * 256);
  return file + "abcd";
}

const Members kBpkTensor = {{"dtype", kCbor.text("U8")},
                            {"shape", kCbor.array({"\x04"})},
                            {"data_offsets", kCbor.array({"\x00"s, "\x04"})}};

Checkpoint read(const std::string& file) {
  const auto bytes = std::make_shared<const std::string>(file);
  return open(memory_source(Storage::borrow(bytes->data(), bytes->size(), [bytes] {}), "record"));
}

Errc code_of_reading(const std::string& file) {
  return code_of([&] { static_cast<void>(read(file)); });
}

// Each field again, with the same value: whichever of the two a reader takes, another one takes the other.
std::vector<Members> with_one_twice(const Members& members) {
  std::vector<Members> all;
  for (const auto& member : members) {
    all.push_back(members);
    all.back().push_back(member);
  }
  return all;
}

TEST(BurnFields, NothingStandsTwiceInAnMpk) {
  const std::string tensor = kMpk.map(kMpkTensor);
  const std::string param = kMpk.map({{"id", kMpk.text("x")}, {"param", tensor}});
  const auto item = [](const std::string& w) { return kMpk.map({{"w", w}}); };
  ASSERT_EQ(read(mpk_of({{"item", item(tensor)}})).size(), 1U);
  ASSERT_EQ(read(mpk_of({{"item", item(param)}})).size(), 1U);
  for (const Members& twice : with_one_twice(kMpkTensor))
    EXPECT_EQ(code_of_reading(mpk_of({{"item", item(kMpk.map(twice))}})), Errc::duplicate_key);
  for (const Members& twice : with_one_twice({{"id", kMpk.text("x")}, {"param", tensor}}))
    EXPECT_EQ(code_of_reading(mpk_of({{"item", item(kMpk.map(twice))}})), Errc::duplicate_key);
  const Members layers = {{"a", kMpk.map({{"x", tensor}})}, {"b", kMpk.map({{"y", tensor}})}, {"c", "\xC0"}};
  for (const Members& twice : with_one_twice(layers)) {
    Members renamed = twice;
    renamed.back().second = kMpk.map({{"z", tensor}});  // its tensors have names of their own
    EXPECT_EQ(code_of_reading(mpk_of({{"item", kMpk.map(renamed)}})), Errc::duplicate_key);
  }
  const std::string words = kMpk.map({{"float", kMpk.text("f32")}});
  for (const Members& twice : with_one_twice({{"metadata", words}, {"item", item(tensor)}}))
    EXPECT_EQ(code_of_reading(mpk_of(twice)), Errc::duplicate_key);
  const std::string ours = kMpk.map({{"ballast", kMpk.map({{"k", kMpk.text("1")}, {"k", kMpk.text("2")}})}});
  EXPECT_EQ(code_of_reading(mpk_of({{"metadata", ours}, {"item", item(tensor)}})), Errc::duplicate_key);
}

TEST(BurnFields, NothingStandsTwiceInABpk) {
  const auto tensors = [](const Members& tensor) { return kCbor.map({{"w", kCbor.map(tensor)}}); };
  const Members whole = {{"tensors", tensors(kBpkTensor)},
                         {"metadata", kCbor.map({{"k", kCbor.text("v")}})},
                         {"scalars", kCbor.map({{"s", kCbor.map({{"UInt", "\x07"}})}})}};
  ASSERT_EQ(read(bpk_of(whole)).size(), 1U);
  for (const Members& twice : with_one_twice(kBpkTensor))
    EXPECT_EQ(code_of_reading(bpk_of({{"tensors", tensors(twice)}})), Errc::duplicate_key);
  for (const Members& twice : with_one_twice(whole))
    EXPECT_EQ(code_of_reading(bpk_of(twice)), Errc::duplicate_key);
}

// Few bytes of a file that become many of memory: a long key around many values, many tiny keys.
TEST(BurnFields, NamesAndMetadataComeFromTheBudget) {
  const std::string item = kMpk.map({{"w", kMpk.map(kMpkTensor)}});
  const auto scalars = [](std::size_t count) {
    return mpk_of({{"item", kMpk.map({{std::string(4000, 'k'), kMpk.array(std::vector(count, "\x01"s))}})}});
  };
  EXPECT_EQ(read(scalars(2000)).size(), 0U);
  EXPECT_EQ(code_of_reading(scalars(6000)), Errc::expansion_limit);
  const auto keys = [](const Spelling& spelling, std::size_t count) {
    std::string map = spelling.map_code + big_endian(count, 4);
    for (std::size_t i = 0; i < count; ++i)
      map += static_cast<char>(spelling.short_text + 6) + std::to_string(100'000 + i) + spelling.short_text;
    return map;
  };
  const auto in_mpk = [&](std::size_t count) {
    return mpk_of({{"metadata", kMpk.map({{"ballast", keys(kMpk, count)}})}, {"item", item}});
  };
  const auto in_bpk = [&](std::size_t count) {
    return bpk_of({{"metadata", keys(kCbor, count)}, {"tensors", kCbor.map({})}});
  };
  EXPECT_EQ(read(in_mpk(50'000)).metadata->size(), 50'001U);
  EXPECT_EQ(code_of_reading(in_mpk(800'000)), Errc::expansion_limit);
  EXPECT_GE(read(in_bpk(50'000)).metadata->size(), 50'000U);
  EXPECT_EQ(code_of_reading(in_bpk(800'000)), Errc::expansion_limit);
}

TEST(BurnFields, SchemesAndRecordsInJsonComeFromTheBudgetToo) {
  const auto quantized = [](std::size_t tensors) {
    std::string scheme = "\xB4";  // a map of 20, in as few bytes as there can be
    for (char c = 'a'; c < 'a' + 20; ++c) scheme += "\x61"s + c + "\x61x";
    const std::string dtype = kCbor.map({{"QFloat", scheme}});
    Members all;
    for (std::size_t i = 0; i < tensors; ++i)
      all.emplace_back(std::to_string(i), kCbor.map({{"dtype", dtype},
                                                     {"shape", kCbor.array({"\x00"s})},
                                                     {"data_offsets", kCbor.array({"\x00"s, "\x00"s})}}));
    return bpk_of({{"tensors", kCbor.map(all)}});
  };
  EXPECT_EQ(read(quantized(1000)).size(), 1000U);
  EXPECT_EQ(code_of_reading(quantized(60'000)), Errc::expansion_limit);
  const auto json = [](std::size_t ones, const std::string& number) {
    std::string text =
        R"({"metadata":{"float":"f32","int":"i32","format":"burn_core::record::file::PrettyJsonFileRecorder<x>",)"
        R"("version":"0.21","settings":"x"},"item":{"k":[)";
    for (std::size_t i = 0; i < ones; ++i) text += (i == 0 ? "" : ",") + number;
    return text + "]}}";
  };
  EXPECT_EQ(read(json(1000, "1")).size(), 0U);
  EXPECT_EQ(read(json(1000, "-1.5")).size(), 0U);
  EXPECT_EQ(code_of_reading(json(20, "1e999")), Errc::bad_json);
}

// Nested far deeper than any scheme, under names that cost nothing: refused before the stack ends.
TEST(BurnFields, ASchemeThatIsNestedTooDeepIsRefused) {
  for (const std::size_t depth : {std::size_t{200}, std::size_t{100'000}}) {
    std::string mpk = "\xC0";
    std::string cbor = "\xF6";
    std::string before_mpk;
    std::string before_cbor;
    for (std::size_t i = 0; i < depth; ++i) {
      before_mpk += "\x81\xA0";
      before_cbor += "\xA1\x60";
    }
    const Members tensor = {{"bytes", "\xC6"s + big_endian(4, 4) + "abcd"},
                            {"shape", kMpk.array({"\x04"})},
                            {"dtype", kMpk.map({{"QFloat", before_mpk + mpk}})}};
    EXPECT_EQ(code_of_reading(mpk_of({{"item", kMpk.map({{"w", kMpk.map(tensor)}})}})), Errc::too_deep);
    const Members packed = {{"dtype", kCbor.map({{"QFloat", before_cbor + cbor}})},
                            {"shape", kCbor.array({"\x04"})},
                            {"data_offsets", kCbor.array({"\x00"s, "\x04"})}};
    EXPECT_EQ(code_of_reading(bpk_of({{"tensors", kCbor.map({{"w", kCbor.map(packed)}})}})), Errc::too_deep);
  }
}

TEST(BurnFields, AnArrayCalledValueLosesNoTensorWhateverStandsBesideIt) {
  const std::string tensor = kMpk.map(kMpkTensor);
  for (const std::vector<std::string>& values : std::vector<std::vector<std::string>>{
           {tensor, "\x01"}, {"\x01", tensor}, {"\xC0", tensor}, {"\x01", "\x02", tensor, "\x03"}}) {
    const Checkpoint checkpoint = read(mpk_of({{"item", kMpk.map({{"value", kMpk.array(values)}})}}));
    EXPECT_EQ(checkpoint.size(), 1U);
    const bool has_numbers = std::count(values.begin(), values.end(), "\x01") > 0;
    EXPECT_EQ(!checkpoint.notes.empty(), has_numbers);
  }
  const std::string numbers = kMpk.map({{"value", kMpk.array({"\x01", "\x02"})}, {"w", tensor}});
  EXPECT_THAT(read(mpk_of({{"item", numbers}})).notes, testing::Contains(testing::HasSubstr("2 values")));
}

using BurnRecords = Scratch;

// Metadata of another format may say anything, and becomes the record's structure.
TEST_F(BurnRecords, ARecordThatWouldNotBeReadAgainIsNotWritten) {
  const std::string longer(5000, 'k');
  const Metadata metadata[] = {{{"burn.configuration", R"({")" + longer + R"(": {"Tanh": null}})"}},
                               {{"burn.configuration", R"({"x": {")" + longer + R"(": null}})"}},
                               {{"burn.scalars", R"({")" + longer + R"(": {"UInt": "1"}})"}},
                               {{"burn.param_ids", R"({"w": ")" + longer + R"("})"}},
                               {{"note", std::string(std::size_t{17} << 20U, 'x')}}};
  for (const Metadata& each : metadata) {
    for (const char* name : {"record.mpk", "record.mpk.gz"}) {
      Checkpoint checkpoint;
      checkpoint.add("w", Tensor::from<float>({1, 2, 3, 4}, {4}));
      checkpoint.metadata = each;
      const std::string at = path(name);
      EXPECT_EQ(code_of([&] { save(checkpoint, at); }), Errc::not_representable) << each.begin()->first;
    }
  }
  EXPECT_THAT(names(), testing::IsEmpty());
}

}  // namespace
}  // namespace ballast
