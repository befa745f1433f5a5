// SPDX-License-Identifier: Apache-2.0
// What shards say of their tensors, and what they say together.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "ballast/io.h"
#include "ballast/quantized.h"
#include "ballast/safetensors.h"
#include "ballast/scan.h"
#include "ballast/steps.h"
#include "base/error_of.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using testing::AllOf;
using testing::ElementsAreArray;
using testing::HasSubstr;
namespace fs = std::filesystem;

class ShardMarks : public Scratch {
 protected:
  void index(const std::string& map) const {
    write(path("model.safetensors.index.json"),
          R"({"metadata": {"total_size": 8}, "weight_map": {)" + map + "}}");
  }

  void one(const std::string& file, const std::string& tensor) const {
    Checkpoint checkpoint;
    checkpoint.add(tensor, Tensor::from<float>({1, 2}, {2}));
    save(checkpoint, path(file));
  }
};

// What a shard says of its tensors (whose layout they have, what is quantized) is no word about another's.
TEST_F(ShardMarks, OfDifferentLayoutsAreRefusedWhicheverOfThemSaysIt) {
  for (const bool first : {true, false})
    for (const char* layout : {"native", "burn"}) {
      for (const bool marked : {true, false}) {
        Checkpoint part;
        part.add(marked ? "b" : "a", Tensor::from<float>({1, 2, 3, 4}, {2, 2}));
        if (marked) part.metadata = Metadata{{"ballast.layout", layout}};
        save(part, path(marked == first ? "1.safetensors" : "2.safetensors"), {.overwrite = true});
      }
      index(first ? R"("b": "1.safetensors", "a": "2.safetensors")"
                  : R"("a": "1.safetensors", "b": "2.safetensors")");
      EXPECT_EQ(code_of([&] { static_cast<void>(open(path("model.safetensors.index.json"))); }),
                Errc::invalid_argument);
      EXPECT_FALSE(scan(path("model.safetensors.index.json")).clean());
    }
}

TEST_F(ShardMarks, WhatEachSaysOfItsQuantizedTensorsHoldsTogether) {
  Checkpoint whole;
  for (const char* name : {"a", "b", "c"}) whole.add(name, Tensor::from<float>({1, -2, 0.5F, 4}, {2, 2}));
  const Checkpoint packed = quantize_int8(whole).checkpoint;
  for (const char* name : {"a", "b", "c"})
    save(filter(packed, {std::string("^") + name}, {}), path(std::string(name) + ".safetensors"));
  std::string map;
  for (const Entry& entry : packed)
    map += (map.empty() ? "" : ", ") + fmt::format("\"{}\": \"{}.safetensors\"", entry.name, entry.name[0]);
  index(map);
  const Checkpoint read = dequantize(open(path("model.safetensors.index.json")));
  ASSERT_EQ(read.size(), 3U);
  const Checkpoint wanted = dequantize(packed);
  for (const Entry& entry : wanted)
    EXPECT_THAT(read.tensor(entry.name).span<float>(), ElementsAreArray(entry.tensor().span<float>()));
}

// In Ballast's words and in those of save_model(), within a shard and across: shown under every name, or
// refused where two of them say something else.
TEST_F(ShardMarks, SecondNamesHoldAcrossShardsAndNeverMeanTwoTensors) {
  const auto part = [&](const std::string& name, float value, const Metadata& metadata) {
    Checkpoint checkpoint;
    checkpoint.add(name + ".w", Tensor::from<float>({value}, {1}));
    checkpoint.metadata = metadata;
    safetensors::save(checkpoint, path(name), {.overwrite = true});
  };
  const auto read = [&] {
    index(R"("a.w": "a", "b.w": "b")");
    return open(path("model.safetensors.index.json"));
  };
  for (const auto& said : {Metadata{{"c.w", "b.w"}}, Metadata{{"ballast.ties", R"({"c.w":"b.w"})"}}}) {
    part("a", 1, said);
    part("b", 2, {});
    ASSERT_EQ(read().size(), 3U);
    EXPECT_EQ(read().tensor("c.w").item(), 2);
    part("b", 2, {{"c.w", "b.w"}});
    EXPECT_EQ(read().size(), 3U);
    part("b", 2, {{"c.w", "a.w"}});
    EXPECT_EQ(code_of([&] { static_cast<void>(read()); }), Errc::duplicate_key);
  }
}

TEST_F(ShardMarks, TwoNamesOfOneFileAreRefusedBeforeItIsOpened) {
  one("a.safetensors", "a");
  fs::create_symlink("a.safetensors", path("soft.safetensors"));
  fs::create_hard_link(path("a.safetensors"), path("hard.safetensors"));
  for (const char* other : {"soft", "hard"}) {
    index(fmt::format(R"("a": "a.safetensors", "b": "{}.safetensors")", other));
    EXPECT_THAT(error_text([&] { static_cast<void>(open(path("model.safetensors.index.json"))); }),
                AllOf(HasSubstr("duplicate-key"), HasSubstr("are one file")));
  }
}

TEST_F(ShardMarks, ThatAreCleanOneByOneAreNotCleanWhereTheIndexIsRefused) {
  one("a.safetensors", "a");
  one("b.safetensors", "b");
  for (const auto& [map, clean] : std::vector<std::pair<const char*, bool>>{
           {R"("a": "a.safetensors", "b": "b.safetensors")", true},
           {R"("a": "b.safetensors", "b": "a.safetensors")", false},
           {R"("a": "a.safetensors", "b": "b.safetensors", "c": "b.safetensors")", false}}) {
    index(map);
    EXPECT_EQ(scan(path("model.safetensors.index.json")).clean(), clean) << map;
  }
}

}  // namespace
}  // namespace ballast
