// SPDX-License-Identifier: Apache-2.0
// Reading: where tensors lie, what messages say, what strict mode adds, what hostile files cannot do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>

#include "formats/safetensors/header.h"
#include "formats/safetensors_testing.h"

namespace ballast::safetensors {
namespace {

using namespace std::string_view_literals;
using testing::HasSubstr;

const std::string kTwo = file_of(
    R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
    "\0\0\x80\x3f\0\0\0\x40\x01\x02\x03"sv);

Error refusal(std::string_view file, Mode mode = Mode::strict) {
  return error_of([&] { static_cast<void>(parse(in_memory(file), {.mode = mode})); });
}

TEST(SafetensorsReader, ReadsTensorsFromMapFileAndMemory) {
  const TemporaryFile file(kTwo);
  for (const Checkpoint& checkpoint :
       {open(file.path()), open(file.path(), {.io = Io::read}), parse(in_memory(kTwo))}) {
    ASSERT_EQ(checkpoint.size(), 2U);
    EXPECT_EQ(checkpoint.format.name(), "safetensors");
    EXPECT_EQ(checkpoint[0].name, "w");
    EXPECT_EQ(checkpoint.total_bytes(), 11U);
    EXPECT_FALSE(checkpoint.metadata);
    EXPECT_THAT(checkpoint.tensor("b").span<std::uint8_t>(), testing::ElementsAre(1, 2, 3));
    EXPECT_THAT(checkpoint.tensor("w").clone().span<float>(), testing::ElementsAre(1.0F, 2.0F));
  }
}

TEST(SafetensorsReader, KeepsTheFileAliveAsLongAsATensorDoes) {
  Tensor tensor;
  {
    const TemporaryFile file(kTwo);
    tensor = open(file.path()).tensor("b");
  }
  EXPECT_THAT(tensor.span<std::uint8_t>(), testing::ElementsAre(1, 2, 3));
}

TEST(SafetensorsReader, ListsTensorsInTheOrderOfTheirData) {
  const Checkpoint checkpoint = parse(in_memory(file_of(
      R"({"z":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"d":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      "ab")));
  std::string names;
  for (const Entry& entry : checkpoint) names += entry.name;
  EXPECT_EQ(names, "aedz");
}

TEST(SafetensorsReader, NamesWhatAFileReallyIs) {
  const auto message = [](std::string_view bytes) {
    const Error error = refusal(bytes);
    EXPECT_EQ(error.code(), Errc::unknown_format) << error.what();
    return std::string(error.what());
  };
  EXPECT_THAT(message("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
              HasSubstr("a Git LFS pointer: run `git lfs pull`"));
  EXPECT_THAT(message("<!DOCTYPE html>\n<html><body>404</body></html>"), HasSubstr("an HTML page"));
  EXPECT_THAT(message("PK\x03\x04\0\0\0\0\0\0archive/data.pkl"sv),
              HasSubstr("a zip archive (a PyTorch file?)"));
  EXPECT_THAT(message("\x1f\x8b\x08\0\0\0\0\0\0\x03garbage"sv), HasSubstr("a gzip file"));
  EXPECT_THAT(message("\x80\x02}q\x01(X\x06\0\0\0"sv), HasSubstr("a pickle"));
  EXPECT_THAT(message("GGUF\x03\0\0\0\x01\0\0\0"sv), HasSubstr("a GGUF file"));
  EXPECT_THAT(message(R"({"weight_map": {}})"), HasSubstr("JSON text"));
  EXPECT_THAT(message("Entry not found"), HasSubstr("plain text"));
}

TEST(SafetensorsReader, SaysWhatIsMissingOfATruncatedFile) {
  const Error data = refusal(kTwo.substr(0, kTwo.size() - 4));
  EXPECT_EQ(data.code(), Errc::truncated);
  EXPECT_THAT(data.what(), HasSubstr(fmt::format("has {} bytes, 7 of them data, where its header promises 11",
                                                 kTwo.size() - 4)));
  const Error header = refusal(kTwo.substr(0, 20));
  EXPECT_EQ(header.code(), Errc::truncated);
  EXPECT_THAT(header.what(),
              HasSubstr(fmt::format("has 20 bytes, its header alone should end at {}", kTwo.size() - 11)));
  EXPECT_THAT(refusal("").what(), HasSubstr("is empty"));
  EXPECT_EQ(refusal("\0\0\0"sv).code(), Errc::truncated);
  // 640 = 0x0280: the length's bytes look like a pickle's first two.
  EXPECT_EQ(refusal("\x80\x02\0\0\0\0\0\0{\"a\":"sv).code(), Errc::truncated);
}

TEST(SafetensorsReader, SaysWhichBytesBelongToNobodyOrToTwo) {
  EXPECT_THAT(
      refusal(
          file_of(
              R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
              "abc"))
          .what(),
      HasSubstr("tensor \"b\": data_offsets [1, 3] overlap tensor \"a\", which ends at 2"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc")).what(),
              HasSubstr("tensor \"a\": data_offsets [1, 3] leave 1 bytes from 0 to nobody"));
  EXPECT_THAT(
      refusal(file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", numbers(8))).what(),
      HasSubstr("tensor \"a\": F32 [3] needs 12 bytes, data_offsets [0, 8] give 8"));
}

TEST(SafetensorsReader, StrictModeNamesTheDuplicateInsteadOfAnOverlap) {
  const std::string file = file_of(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      "ab");
  EXPECT_EQ(refusal(file).code(), Errc::duplicate_key);
  EXPECT_THAT(refusal(file).what(),
              HasSubstr("tensor \"a\" is there twice in the header, at bytes 10 and 62 of the file"));
  EXPECT_EQ(refusal(file, Mode::reference).code(), Errc::gap);
  EXPECT_THAT(refusal(file_of(R"({"__metadata__":{"k":"1","k":"2"}})")).what(),
              HasSubstr("metadata key \"k\" is there twice"));
}

TEST(SafetensorsReader, NamesTheRightOneOfSeveralMetadataKeys) {
  EXPECT_THAT(refusal(file_of(R"({"__metadata__":{"b":"1","c":"","a":"","b":"2"}})")).what(),
              HasSubstr("metadata key \"b\" is there twice"));
}

TEST(SafetensorsReader, ReferenceModeTakesTheLastOfDuplicatesAndSaysSo) {
  const Checkpoint checkpoint = parse(
      in_memory(file_of(
          R"({"__metadata__":{"k":"1","j":"0","k":"2"},"a":{"dtype":"U8","shape":[9],"data_offsets":[7,16]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "x")),
      {.mode = Mode::reference});
  EXPECT_EQ(checkpoint.size(), 1U);
  EXPECT_EQ(checkpoint.tensor("a").span<std::uint8_t>()[0], 'x');
  EXPECT_EQ(checkpoint.metadata, (Metadata{{"j", "0"}, {"k", "2"}}));
  ASSERT_EQ(checkpoint.notes.size(), 1U);
}

TEST(SafetensorsReader, ShowsDimensionsBeyondInt64AsFarAsTheyGoAndSaysSo) {
  const std::string file =
      file_of(R"({"a":{"dtype":"U8","shape":[0,18446744073709551615],"data_offsets":[0,0]}})");
  EXPECT_EQ(refusal(file).code(), Errc::size_overflow);
  const Checkpoint checkpoint = parse(in_memory(file), {.mode = Mode::reference});
  EXPECT_EQ(Shape(checkpoint[0].shape), (Shape{0, INT64_MAX}));
  EXPECT_EQ(checkpoint.tensor("a").numel(), 0);
  EXPECT_THAT(checkpoint.notes.at(0), HasSubstr("18446744073709551615"));
}

// Numbers in fields nobody reads count too: the reference refuses what becomes infinite in its own
// arithmetic, which is not quite that of strtod.
TEST(SafetensorsReader, JudgesUnusedNumbersAsTheReferenceDoes) {
  const auto accepted = [](const std::string& number) {
    const std::string file =
        file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":)" + number + "}}");
    try {
      static_cast<void>(parse(in_memory(file)));
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::bad_json);
      return false;
    }
  };
  for (const char* number : {"0", "-0", "1e308", "123456789012345678901234567890", "-9223372036854775809",
                             "0e999999999999", "1e-999999999999", "0.0000000000000000000000001e300",
                             "1.7976931348623157e308", "1E+2", "18446744073709551616.5e-3"}) {
    EXPECT_TRUE(accepted(number)) << number;
  }
  for (const char* number : {"1e309", "-1e309", "1e999999", "1e99999999999999999999", "1.", ".5", "1e", "1e+",
                             "-", "--1", "01", "-01", "0x1", "1.8e308", "Infinity", "+1"}) {
    EXPECT_FALSE(accepted(number)) << number;
  }
  EXPECT_TRUE(accepted(std::string("1") + std::string(308, '0')));
  EXPECT_FALSE(accepted(std::string("1") + std::string(309, '0')));
}

TEST(SafetensorsReader, AllowsNestingUpTo127Levels) {
  const auto nested = [](int arrays) {
    return file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":)" +
                   std::string(static_cast<std::size_t>(arrays), '[') +
                   std::string(static_cast<std::size_t>(arrays), ']') + "}}");
  };
  EXPECT_EQ(parse(in_memory(nested(125))).size(), 1U);
  EXPECT_EQ(refusal(nested(126)).code(), Errc::bad_json);
  EXPECT_EQ(refusal(nested(1'000'000)).code(), Errc::bad_json);
}

TEST(SafetensorsReader, RefusesFoldersAndMissingFiles) {
  EXPECT_EQ(code_of([] { static_cast<void>(open(BALLAST_TEST_OUTPUT)); }), Errc::not_regular_file);
  EXPECT_EQ(code_of([] { static_cast<void>(open(new_path())); }), Errc::file_not_found);
}

TEST(SafetensorsReader, EscapesNamesInMessages) {
  EXPECT_THAT(refusal(file_of(R"({"\u001b[31m":{"dtype":"F99","shape":[],"data_offsets":[0,0]}})")).what(),
              HasSubstr(R"(tensor "\x1b[31m")"));
}

std::string entry_text(std::size_t i, std::size_t begin, std::size_t end) {
  return fmt::format("\"t{}\":{{\"dtype\":\"U8\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", i, end - begin,
                     begin, end);
}

TEST(SafetensorsReader, RefusesAHundredThousandOverlappingTensors) {
  std::string header = "{";
  for (std::size_t i = 0; i < 100'000; ++i) header += (i == 0 ? "" : ",") + entry_text(i, 0, 1);
  EXPECT_EQ(refusal(file_of(header + "}", "x")).code(), Errc::overlap);
}

TEST(SafetensorsReader, ReadsAMillionTensorsInAnyOrder) {
  constexpr std::size_t kCount = 1'000'000;
  std::string header = "{";
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t at = i * 7'368'787 % kCount;  // a prime: every position once
    header += (i == 0 ? "" : ",") + entry_text(at, at, at + 1);
  }
  const Checkpoint checkpoint = parse(in_memory(file_of(header + "}", numbers(kCount))));
  ASSERT_EQ(checkpoint.size(), kCount);
  EXPECT_EQ(checkpoint[kCount - 1].name, "t999999");
  EXPECT_EQ(checkpoint.tensor("t12345").span<std::uint8_t>()[0],
            static_cast<std::uint8_t>(numbers(12'346).back()));
}

TEST(SafetensorsReader, ReadsAHeaderOfExactlyTheLimit) {
  const std::string file = file_of("{}" + std::string(kMaxHeaderBytes - 2, ' '));
  EXPECT_EQ(parse(in_memory(file)).size(), 0U);
  EXPECT_EQ(refusal(file_of("{}" + std::string(kMaxHeaderBytes - 1, ' '))).code(), Errc::header_too_large);
}

TEST(SafetensorsReader, LimitsMetadataKeysInStrictMode) {
  std::string header = R"({"__metadata__":{)";
  for (int i = 0; i <= 1'000'000; ++i) header += fmt::format("{}\"{}\":\"\"", i == 0 ? "" : ",", i);
  const std::string file = file_of(header + "}}");
  EXPECT_EQ(refusal(file).code(), Errc::too_many);
  EXPECT_EQ(parse(in_memory(file), {.mode = Mode::reference}).metadata->size(), 1'000'001U);
}

TEST(SafetensorsReader, OpensAFileLargerThanMemoryWithoutTouchingItsData) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}})";
  const TemporaryFile file(file_of(header));
  if (truncate(file.path().c_str(), static_cast<off_t>(8 + header.size() + (std::size_t{1} << 40U))) != 0)
    GTEST_SKIP() << "no sparse files here";
  for (const Io io : {Io::map, Io::read}) {
    const Checkpoint checkpoint = open(file.path(), {.io = io});
    std::byte last{1};
    checkpoint.tensor("a").read((std::uint64_t{1} << 40U) - 1, {&last, 1});
    EXPECT_EQ(last, std::byte{0});
  }
}

}  // namespace
}  // namespace ballast::safetensors
