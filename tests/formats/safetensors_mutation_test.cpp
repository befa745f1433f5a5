// SPDX-License-Identifier: Apache-2.0
// Every truncation and every single-byte change of small files: a clean refusal or a correct read, by the
// judgement of a second parser.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/safetensors_properties.h"
#include "formats/safetensors_testing.h"

namespace ballast::safetensors {
namespace {

std::vector<std::string> fixtures() {
  return {
      file_of("{}"),
      file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", numbers(8)),
      file_of(
          R"({"__metadata__":{"k":"v\n","é":"\u0041"},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},"e":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}  )",
          numbers(4)),
      file_of(" {\"x\\ud83d\\ude00\" : [\"F4\", [ 2 , 3 ], [0, 3]] , \"y\": {\"data_offsets\": [3,4], \"z\": "
              "[null,true,-1.5e3,{\"q\":[]}], \"shape\": [], \"dtype\": {\"I8\": null}}}\n",
              numbers(4)),
  };
}

TEST(SafetensorsMutation, FixturesThemselvesAreReadCorrectly) {
  for (const std::string& file : fixtures()) {
    EXPECT_EQ(properties::broken(file), "");
    EXPECT_TRUE(properties::read(*in_memory(file), Mode::strict).header);
  }
}

TEST(SafetensorsMutation, EveryTruncationIsRefused) {
  for (const std::string& file : fixtures()) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      const std::string cut = file.substr(0, size);
      EXPECT_FALSE(properties::read(*in_memory(cut), Mode::reference).header) << size;
      EXPECT_EQ(properties::broken(cut), "") << size;
      const TemporaryFile on_disk(cut);
      EXPECT_THROW(static_cast<void>(open(on_disk.path(), {.io = Io::read})), Error) << size;
    }
  }
}

TEST(SafetensorsMutation, EveryByteAddedAtTheEndIsRefused) {
  for (const std::string& file : fixtures())
    EXPECT_EQ(properties::read(*in_memory(file + '\0'), Mode::reference).code, Errc::trailing_data);
}

TEST(SafetensorsMutation, EveryChangeOfOneHeaderByteIsRefusedOrReadCorrectly) {
  int accepted = 0;
  for (const std::string& file : fixtures()) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    std::string changed = file;
    for (std::size_t at = 0; at < 8 + length; ++at) {
      for (int value = 0; value < 256; ++value) {
        changed[at] = static_cast<char>(value);
        const std::string complaint = properties::broken(changed);
        EXPECT_EQ(complaint, "") << "byte " << at << " = " << value << " of " << file.substr(8, length);
        if (properties::read(*in_memory(changed), Mode::reference).header) ++accepted;
      }
      changed[at] = file[at];
    }
  }
  EXPECT_GT(accepted, 1000);  // or the test would show nothing about reading
}

TEST(SafetensorsMutation, ConformanceCasesHoldToo) {
  for (const Case& test : conformance_cases()) EXPECT_EQ(properties::broken(test.file), "") << test.name;
}

}  // namespace
}  // namespace ballast::safetensors
