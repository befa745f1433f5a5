// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ballast/error.h"
#include "base/hash.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Names = std::vector<std::string_view>;

TEST(Nearest, FindsTypingErrorsNearestFirst) {
  const Names names = {"encoder.weight", "fc1.bias", "fc1.weight", "fc11.weights", "fc2.weight", "unrelated"};
  EXPECT_THAT(nearest("fc1.weigth", names), ElementsAre("fc1.weight", "fc2.weight", "fc11.weights"));
  EXPECT_THAT(nearest("fc1.weight", names, 1), ElementsAre("fc1.weight"));
  EXPECT_THAT(nearest("something.else.entirely", names), IsEmpty());
  EXPECT_THAT(nearest("fc1.weight", names, 0), IsEmpty());
  EXPECT_THAT(nearest("x", Names{}), IsEmpty());
}

TEST(Nearest, NeighboursThatChangedPlacesAreOneError) {
  EXPECT_THAT(nearest("sl", Names{"ls", "ss"}, 1), ElementsAre("ls"));
  EXPECT_THAT(nearest("covnert", Names{"content", "convert"}, 1), ElementsAre("convert"));
}

TEST(Nearest, AShortWordIsNotNearToEveryOther) {
  EXPECT_THAT(nearest("xx", Names{"ls", "fc"}), IsEmpty());
  EXPECT_THAT(nearest("fd", Names{"ls", "fc"}), ElementsAre("fc"));
}

TEST(Nearest, AMissingOrExtraPrefixIsNear) {
  EXPECT_THAT(nearest("fc1.weight", Names{"model.backbone.fc1.weight", "xfc1.weight.other.thing"}),
              ElementsAre("model.backbone.fc1.weight"));
  EXPECT_THAT(nearest("module.very.deep.fc1.weight", Names{"fc1.weight"}), ElementsAre("fc1.weight"));
  EXPECT_THAT(nearest("a.", Names{""}), ElementsAre(""));
}

TEST(Nearest, EqualDistancesKeepTheFilesOrder) {
  EXPECT_THAT(nearest("layer5", Names{"layer9", "layer1", "layer3", "layer2"}),
              ElementsAre("layer9", "layer1", "layer3"));
  // A nearer one found late still comes first.
  EXPECT_THAT(nearest("layer5", Names{"layer99", "layer98", "layer1", "layer5"}),
              ElementsAre("layer5", "layer1", "layer99"));
}

TEST(Nearest, AsksInASentence) {
  EXPECT_EQ(did_you_mean("abc", Names{"abd"}), "; did you mean \"abd\"?");
  EXPECT_EQ(did_you_mean("abc", Names{"abd", "abe"}), "; did you mean \"abd\" or \"abe\"?");
  EXPECT_EQ(did_you_mean("abc", Names{"abd", "abe", "ab\x1B"}),
            "; did you mean \"abd\", \"abe\" or \"ab\\x1b\"?");
  EXPECT_EQ(did_you_mean("abc", Names{"zzzzzz"}), "");
}

TEST(Hash, IsTheSameForTheSameName) {
  EXPECT_EQ(hash_name("a.b"), hash_name(std::string("a.") + "b"));
  EXPECT_NE(hash_name("a.b"), hash_name("a.c"));
  EXPECT_EQ(hash_name(""), hash_name(std::string_view()));
}

}  // namespace
}  // namespace ballast
