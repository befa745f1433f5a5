// SPDX-License-Identifier: Apache-2.0
#include "ballast/scaffold.h"

#include "ballast/error.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;

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

TEST(Scaffold, RefusesWhatIsNoName) {
  EXPECT_THROW(static_cast<void>(scaffold(checkpoint({{"a", {1}}}), {.name = "class"})), Error);
  EXPECT_THROW(static_cast<void>(scaffold(checkpoint({{"a", {1}}}), {.name = "a b"})), Error);
  EXPECT_THROW(static_cast<void>(scaffold(Checkpoint{})), Error);
}

}  // namespace
}  // namespace ballast
