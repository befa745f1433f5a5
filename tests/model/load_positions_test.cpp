// SPDX-License-Identifier: Apache-2.0
// Positions of vectors: taken as they are where they can, compacted where they must.
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Mlp {
  std::vector<nn::Conv2d> fc = nn::repeat<nn::Conv2d>(5, 2, 2, 3);
};

Checkpoint mlp_file(const std::vector<int>& positions) {
  std::vector<std::pair<std::string, Shape>> tensors;
  for (const int i : positions)
    tensors.insert(tensors.end(), {{"fc." + std::to_string(i) + ".weight", {2, 2, 3, 3}},
                                   {"fc." + std::to_string(i) + ".bias", {2}}});
  return checkpoint(tensors);
}

// "non_contiguous_indexes" of README.md
TEST(Load, PositionsAreCompactedWhenTheModelsAreNotThere) {
  Mlp model;
  const Checkpoint file = mlp_file({0, 2, 4, 6, 8});
  const LoadReport report = load(model, file);
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(floats(model.fc[2].bias), floats(file.tensor("fc.4.bias")));  // not fc.2, which exists too
  EXPECT_THAT(targets(report.reindexed), ElementsAre("fc.1", "fc.2", "fc.3", "fc.4"));
  EXPECT_THAT(sources(report.reindexed), ElementsAre("fc.2", "fc.4", "fc.6", "fc.8"));
  Mlp off;
  EXPECT_THAT(targets(failed_load(off, file, {.reindex = {}}).missing),
              ElementsAre("fc.1.weight", "fc.1.bias", "fc.3.weight", "fc.3.bias"));
  Mlp except;
  EXPECT_FALSE(failed_load(except, file, {.keep_positions = {R"(^fc\.)"}}).complete());
}

TEST(Load, PositionsOfTheFileAreTakenAsTheyAreWhenTheyCan) {
  Mlp model;
  const Checkpoint longer = mlp_file({0, 1, 2, 3, 4, 5, 6});
  EXPECT_THAT(load(model, longer).reindexed, IsEmpty());
  EXPECT_EQ(floats(model.fc[4].bias), floats(longer.tensor("fc.4.bias")));
  EXPECT_THAT(targets(failed_load(model, mlp_file({0, 1, 3, 4})).missing),
              ElementsAre("fc.2.weight", "fc.2.bias"));
}

// Flows at 1 and 3 have no parameters, in the model as in the file
TEST(Load, RealGapsInTheModelStayGaps) {
  struct Flow {
    std::optional<nn::Linear> linear;
  };

  struct Model {
    std::vector<Flow> flows;
  };

  Model model;
  for (int i = 0; i < 4; ++i) model.flows.push_back(i % 2 == 0 ? Flow{nn::Linear{2, 2}} : Flow{});
  const LoadReport report = load(model, checkpoint({{"flows.0.linear.weight", {2, 2}},
                                                    {"flows.0.linear.bias", {2}},
                                                    {"flows.2.linear.weight", {2, 2}},
                                                    {"flows.2.linear.bias", {2}}}));
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.reindexed, IsEmpty());
  EXPECT_THAT(report.unused, IsEmpty());
}

TEST(Load, NestedPositionsAreCompactedOneByOne) {
  struct Inner {
    std::vector<nn::Linear> conv_block = nn::repeat<nn::Linear>(2, 1, 1, nn::LinearOptions{.bias = false});
  };

  struct Model {
    std::vector<Inner> layers = nn::repeat<Inner>(2);
  } model;

  const Checkpoint file = checkpoint({{"layers.0.conv_block.0.weight", {1, 1}},
                                      {"layers.0.conv_block.1.weight", {1, 1}},
                                      {"layers.2.conv_block.1.weight", {1, 1}},
                                      {"layers.2.conv_block.3.weight", {1, 1}}});
  EXPECT_TRUE(load(model, file).complete());
  EXPECT_EQ(floats(model.layers[0].conv_block[1].weight),
            floats(file.tensor("layers.0.conv_block.1.weight")));
  EXPECT_EQ(floats(model.layers[1].conv_block[0].weight),
            floats(file.tensor("layers.2.conv_block.1.weight")));
}

TEST(Load, SequentialIsExact) {
  struct Model {
    nn::Sequential<nn::Linear, nn::ReLU, nn::Linear> net{{2, 3}, {}, {3, 4}};
  };

  Model model;
  EXPECT_TRUE(load(model, checkpoint({{"net.0.weight", {3, 2}},
                                      {"net.0.bias", {3}},
                                      {"net.2.weight", {4, 3}},
                                      {"net.2.bias", {4}}}))
                  .complete());
  Model other;
  EXPECT_THAT(targets(failed_load(other, checkpoint({{"net.0.weight", {3, 2}},
                                                     {"net.0.bias", {3}},
                                                     {"net.3.weight", {4, 3}},
                                                     {"net.3.bias", {4}}}))
                          .missing),
              ElementsAre("net.2.weight", "net.2.bias"));
}

}  // namespace
}  // namespace ballast
