// SPDX-License-Identifier: Apache-2.0
#include "scaffold/scaffold.h"

#include <fmt/format.h>

#include "ballast/error.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using tool::scaffold;

TEST(Scaffold, GuessesLayersAndFoldsRepeatedBlocks) {
  const std::string text = scaffold(checkpoint({{"stem.weight", {8, 3, 3, 3}},
                                                {"stem.bias", {8}},
                                                {"blocks.0.fc.weight", {4, 8}},
                                                {"blocks.0.norm.weight", {4}},
                                                {"blocks.0.norm.bias", {4}},
                                                {"blocks.1.fc.weight", {4, 8}},
                                                {"blocks.1.norm.weight", {4}},
                                                {"blocks.1.norm.bias", {4}},
                                                {"default.0.weight", {4, 2}},
                                                {"default.2.weight", {2, 4}},
                                                {"scale", {2, 2}}}),
                                    {.name = "Net", .space = "app"});
  EXPECT_THAT(
      text,
      HasSubstr("struct Block {\n  nn::Linear fc{8, 4, {.bias = false}};\n  nn::LayerNorm norm{4};\n};\n"));
  EXPECT_THAT(text, HasSubstr("  nn::Conv2d stem{3, 8, {3, 3}};  // stride"));
  EXPECT_THAT(text, HasSubstr("  std::vector<Block> blocks = nn::repeat<Block>(2);\n"));
  EXPECT_THAT(text, HasSubstr("  nn::Sequential<nn::Linear, nn::Identity, nn::Linear> default_{{2, 4, {.bias "
                              "= false}}, {}, {4, 2, {.bias = false}}};\n"));
  EXPECT_THAT(text, HasSubstr("  ballast::Tensor scale{ballast::DType::f32, {2, 2}};\n"));
  EXPECT_THAT(text, HasSubstr("namespace app {"));
}

// A Linear in PyTorch is [out, in], GPT-2's Conv1D [in, out]: of a square one only what lies around can tell.
TEST(Scaffold, ASquareMatrixLiesAsTheNearestOthersDo) {
  using Keys = std::vector<std::pair<std::string, Shape>>;
  const auto with = [](const std::string& key, Shape weight, std::int64_t bias) {
    return Keys{{key + ".weight", std::move(weight)}, {key + ".bias", {bias}}};
  };
  for (const std::string at : {"h.0.attn.", "h.0.mlp.", "h.1.attn.", "other.", ""}) {  // nearer to farther
    for (const int around : {0, 1, 2, 3}) {  // bit 0: an [out, in], bit 1: an [in, out]
      Keys keys = with("h.0.attn.c_proj", {4, 4}, 4);
      const auto add = [&](const Keys& more) { keys.insert(keys.end(), more.begin(), more.end()); };
      if ((around & 1) != 0) add(with(at + "fc", {6, 4}, 6));
      if ((around & 2) != 0) add(with(at + "c_fc", {4, 6}, 6));
      const std::string text = scaffold(checkpoint(keys), {});
      const bool is_linear = text.find("nn::Linear c_proj{4, 4};") != text.npos;
      const bool is_asked = text.find("square: nn::Linear when it is [out, in]") != text.npos;
      EXPECT_EQ(is_linear, around == 1) << text;
      EXPECT_EQ(is_asked, around == 0 || around == 3) << text;
    }
  }
  // Without a bias it is no Conv1D.
  EXPECT_THAT(scaffold(checkpoint({{"fc.weight", {4, 4}}}), {}),
              HasSubstr("nn::Linear fc{4, 4, {.bias = false}};"));
}

// Both kinds in one file: the block decides.
TEST(Scaffold, TheBlockDecidesBeforeTheFile) {
  const std::string text = scaffold(checkpoint({{"gpt.proj.weight", {4, 4}},
                                                {"gpt.proj.bias", {4}},
                                                {"gpt.fc.weight", {4, 6}},
                                                {"gpt.fc.bias", {6}},
                                                {"bert.out.weight", {4, 4}},
                                                {"bert.out.bias", {4}},
                                                {"bert.fc.weight", {6, 4}},
                                                {"bert.fc.bias", {6}}}),
                                    {});
  EXPECT_THAT(text, HasSubstr("nn::Linear out{4, 4};"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("nn::Linear proj")));
}

std::string repeated(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

std::size_t count_of(std::string_view part, std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A step for each segment, where looking twice at each would be 2^59.
TEST(Scaffold, NumbersWithGapsInsideEachOtherAreLookedAtOnce) {
  const std::string name = "a" + repeated(".300", 59);
  const std::string text = scaffold(checkpoint({{name, {2}}}), {});
  EXPECT_EQ(count_of("visit(\"300\", self.layer_300);", text), 59U);
}

TEST(Scaffold, KeysWithoutAnyLetterGetFieldsWithNumbers) {
  std::vector<std::pair<std::string, Shape>> keys;
  for (int i = 0; i < 20'000; ++i) keys.emplace_back(fmt::format("-{}", i), Shape{2});
  const std::string text = scaffold(checkpoint(keys), {});
  EXPECT_EQ(count_of("visit(\"-", text), keys.size());
  EXPECT_THAT(text, HasSubstr("  ballast::Tensor field_Part{ballast::DType::f32, {2}};\n"));
  EXPECT_THAT(text, HasSubstr("    visit(\"-1\", self.field_Part2);\n"));
  EXPECT_THAT(text, HasSubstr("    visit(\"-19999\", self.field_Part20000);\n"));
}

TEST(Scaffold, NamesWithFarMorePartsThanModelsHaveAreRefused) {
  std::vector<std::pair<std::string, Shape>> keys;
  for (int i = 0; i < 1900; ++i) keys.emplace_back(std::to_string(i) + repeated(".a", 58), Shape{2});
  try {
    static_cast<void>(scaffold(checkpoint(keys), {}));
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_many);
    EXPECT_THAT(error.what(), HasSubstr("1900 tensors have more than 107600 parts"));
  }
}

TEST(Scaffold, RefusesWhatIsNoName) {
  EXPECT_THROW(static_cast<void>(scaffold(checkpoint({{"a", {1}}}), {.name = "class"})), Error);
  EXPECT_THROW(static_cast<void>(scaffold(checkpoint({{"a", {1}}}), {.name = "a b"})), Error);
  EXPECT_THROW(static_cast<void>(scaffold(Checkpoint{})), Error);
}

}  // namespace
}  // namespace ballast
