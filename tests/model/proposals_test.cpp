// SPDX-License-Identifier: Apache-2.0
// What a load that failed proposes: the nearest names, and rules that would make it one that does not.
#include "ballast/load.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Proposals, NearestNamesAndRules) {
  struct Model {
    nn::Linear classifier{2, 3};
    nn::Conv2d stem{3, 4, 1};
  } model;

  const LoadReport report = failed_load(model, checkpoint({{"backbone.stem.weight", {4, 3, 1, 1}},
                                                           {"backbone.stem.bias", {4}},
                                                           {"clasifier.weight", {3, 2}},
                                                           {"clasifier.bias", {3}}}));
  EXPECT_THAT(report.text(), HasSubstr(R"(classifier.weight; did you mean "clasifier.weight"?)"));
  Model again;
  EXPECT_TRUE(load(again,
                   checkpoint({{"backbone.stem.weight", {4, 3, 1, 1}},
                               {"backbone.stem.bias", {4}},
                               {"clasifier.weight", {3, 2}},
                               {"clasifier.bias", {3}}}),
                   {.rename = report.suggestions})
                  .complete());
  EXPECT_THAT(report.text(), HasSubstr(R"x({R"(^backbone\.)", ""},)x"));
}

TEST(Proposals, EveryProposedRuleStillMatchesAfterTheOnesBeforeIt) {
  struct Model {
    std::vector<nn::Linear> layers = {{4, 8}, {8, 8}, {8, 8}};
    nn::Linear head{8, 3};
  } model;

  const Checkpoint file = checkpoint({{"backbone.mlp.0.weight", {8, 4}},
                                      {"backbone.mlp.0.bias", {8}},
                                      {"backbone.mlp.2.weight", {8, 8}},
                                      {"backbone.mlp.2.bias", {8}},
                                      {"backbone.mlp.4.weight", {8, 8}},
                                      {"backbone.mlp.4.bias", {8}},
                                      {"backbone.classifier.weight", {3, 8}},
                                      {"backbone.classifier.bias", {3}}});
  const LoadReport report = failed_load(model, file);
  const LoadReport again = load(model, file, {.rename = report.suggestions});
  EXPECT_TRUE(again.complete());
  EXPECT_THAT(again.text(), Not(HasSubstr("matched no key")));
}

}  // namespace
}  // namespace ballast
