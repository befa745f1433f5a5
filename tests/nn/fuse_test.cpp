// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ballast/load.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/record.h"
#include "base/scratch.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ops_tests::error_of;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Tensor random(const Shape& shape, std::uint64_t seed) {
  Generator generator(seed);
  return randn(shape, generator);
}

void disturb(nn::BatchNorm& norm, std::uint64_t seed) {
  Generator generator(seed);
  const Shape shape{norm.num_features};
  norm.running_mean = randn(shape, generator);
  norm.running_var = rand(shape, generator) + 0.1;
  if (norm.options.affine) norm.gamma = randn(shape, generator);
  if (norm.options.affine) norm.beta = randn(shape, generator);
}

template <class Layer, class Norm>
struct Block {
  Layer layer;
  Norm norm;

  Tensor forward(const Tensor& x) const { return norm.forward(layer.forward(x)); }
};

template <class Layer, class Norm>
void expect_same_after_fusing(Block<Layer, Norm> block, const Tensor& x) {
  init(block);
  disturb(block.norm, 5);
  const Tensor before = block.forward(x);
  const std::vector<Folded> folded = fuse(block);
  ASSERT_THAT(folded, SizeIs(1));
  EXPECT_EQ(folded[0].layer, "layer");
  EXPECT_EQ(folded[0].norm, "norm");
  EXPECT_TRUE(block.norm.folded());
  EXPECT_LE(error_of(block.forward(x), before), 1e-5);
  // The norm passes on what it gets: the layer alone gives the result.
  EXPECT_EQ(error_of(block.layer.forward(x), block.forward(x)), 0);
}

TEST(Fuse, FoldsIntoEveryKindOfLayer) {
  expect_same_after_fusing(Block<nn::Conv1d, nn::BatchNorm1d>{{3, 5, 3, {.bias = false}}, {5}},
                           random({2, 3, 8}, 1));
  expect_same_after_fusing(Block<nn::Conv2d, nn::BatchNorm2d>{{4, 6, 3, {.groups = 2}}, {6}},
                           random({2, 4, 8, 7}, 2));
  expect_same_after_fusing(Block<nn::Conv3d, nn::BatchNorm3d>{{3, 5, 2}, {5, {.affine = false}}},
                           random({2, 3, 4, 5, 4}, 3));
  expect_same_after_fusing(Block<nn::ConvTranspose1d, nn::BatchNorm1d>{{3, 5, 3}, {5}}, random({2, 3, 8}, 4));
  expect_same_after_fusing(
      Block<nn::ConvTranspose2d, nn::BatchNorm2d>{{4, 6, 3, {.groups = 2, .bias = false}}, {6}},
      random({2, 4, 5, 5}, 5));
  expect_same_after_fusing(Block<nn::ConvTranspose3d, nn::BatchNorm3d>{{3, 5, 2}, {5}},
                           random({1, 3, 3, 4, 3}, 6));
  expect_same_after_fusing(Block<nn::Linear, nn::BatchNorm1d>{{7, 5}, {5, {.eps = 0.01}}}, random({6, 7}, 7));
}

struct Net {
  nn::Sequential<nn::Conv2d, nn::BatchNorm2d, nn::ReLU, nn::Conv2d, nn::BatchNorm2d> body{
      {3, 4, 3, {.bias = false}}, {4}, {}, {4, 4, 1}, {4}};
  nn::BatchNorm2d last{4};

  Tensor forward(const Tensor& x) const { return last.forward(body.forward(x)); }
};

Net disturbed_net() {
  Net net;
  init(net);
  disturb(net.body.get<1>(), 1);
  disturb(net.body.get<4>(), 2);
  disturb(net.last, 3);
  return net;
}

TEST(Fuse, SequentialAppliesFoldedNormsAndActivationsInOneStep) {
  Net net = disturbed_net();
  const Tensor x = random({2, 3, 9, 9}, 1);
  const Tensor before = net.forward(x);
  EXPECT_THAT(fuse(net, x), SizeIs(2));  // `last` stands alone
  EXPECT_FALSE(net.last.folded());
  EXPECT_LE(error_of(net.forward(x), before), 1e-5);
  EXPECT_THAT(fuse(net), SizeIs(0));
}

TEST(Fuse, AFusedModelCanBeSaved) {
  Net net = disturbed_net();
  const Tensor x = random({1, 3, 6, 6}, 1);
  const Tensor before = net.forward(x);
  fuse(net);
  Net again;
  again.body.get<0>().options.bias = true;  // it has one now
  again.body.get<0>().bias = Tensor(DType::f32, {4});
  load(again, to_checkpoint(net));
  EXPECT_FALSE(again.body.get<1>().folded());
  EXPECT_LE(error_of(again.forward(x), before), 1e-5);
}

TEST(Fuse, OtherStatisticsBringTheNormBack) {
  Block<nn::Linear, nn::BatchNorm1d> block{{3, 3}, {3}};
  init(block);
  fuse(block);
  disturb(block.norm, 4);
  EXPECT_FALSE(block.norm.folded());
}

TEST(Fuse, AnOrderOfCallsThatIsNotTheOrderOfMembersIsFoundOut) {
  struct Backwards {
    nn::Conv2d conv{4, 4, 1};
    nn::BatchNorm2d norm{4};

    Tensor forward(const Tensor& x) const { return conv.forward(relu(norm.forward(x))); }
  } model;

  init(model);
  disturb(model.norm, 1);
  const Tensor x = random({2, 4, 3, 3}, 1);
  const Tensor before = model.forward(x);
  try {
    fuse(model, x);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("fuse"));
  }
  EXPECT_FALSE(model.norm.folded());
  EXPECT_EQ(error_of(model.forward(x), before), 0);
}

TEST(Fuse, TiedWeightsStay) {
  struct Tied {
    nn::Linear layer{3, 3};
    nn::BatchNorm1d norm{3};
    nn::Linear other{3, 3};
  } model;

  init(model);
  model.other.weight = model.layer.weight;
  EXPECT_THAT(fuse(model), SizeIs(0));
}

class FuseFile : public Scratch {};

// From a mapped file the folded weight is computed where it is needed, in whatever pieces.
TEST_F(FuseFile, FoldedWeightOfAFileIsThatOfMemory) {
  using Folds = Block<nn::Conv2d, nn::BatchNorm2d>;
  const auto fresh = [] { return Folds{{6, 10, 3, {.groups = 2}}, {10}}; };
  Folds memory = fresh();
  init(memory);
  disturb(memory.norm, 5);
  save_record(memory, path("block.record"));
  Folds file = fresh();
  load_record(file, path("block.record"));
  fuse(memory);
  fuse(file);
  const Tensor x = random({3, 6, 9, 8}, 7);
  EXPECT_EQ(error_of(file.forward(x), memory.forward(x)), 0);
  EXPECT_FALSE(file.layer.weight.storage()->ready()) << "it was kept beside the order that is used";
  const auto wanted = std::as_bytes(memory.layer.weight.span<float>());
  const std::size_t size = wanted.size();
  for (std::size_t from = 0; from < size; from += 37) {
    std::vector<std::byte> part(std::min<std::size_t>(size - from, 1 + from % 211));
    file.layer.weight.read(from, part);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), wanted.begin() + static_cast<std::ptrdiff_t>(from)))
        << from;
  }
  EXPECT_EQ(error_of(file.layer.weight, memory.layer.weight), 0);
  file.layer.weight.mutable_span<float>()[3] += 1;
  memory.layer.weight.mutable_span<float>()[3] += 1;
  EXPECT_EQ(error_of(file.forward(x), memory.forward(x)), 0);
}

}  // namespace
}  // namespace ballast
