// SPDX-License-Identifier: Apache-2.0
// Models into Burn's files and back: the format decides whose names and layouts are written.
#include <gtest/gtest.h>

#include "ballast/ballast.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using BurnModels = Scratch;

struct Small {
  nn::Linear fc{2, 3};
  nn::BatchNorm2d norm{2};
};

TEST_F(BurnModels, AreSavedWithBurnsNamesAndLayoutsAndLoadedAgain) {
  Checkpoint weights;
  weights.add("fc.weight", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));  // PyTorch: [out, in]
  weights.add("fc.bias", Tensor::from<float>({7, 8, 9}, {3}));
  for (const char* name : {"weight", "bias", "running_mean", "running_var"})
    weights.add(std::string("norm.") + name, Tensor::from<float>({1, 2}, {2}));
  Small model;
  load(model, weights);
  for (const std::string name : {"m.bpk", "m.mpk"}) {
    save(model, path(name));
    const Checkpoint file = open(path(name));
    EXPECT_EQ(Shape(file.at("fc.weight").shape), Shape({2, 3})) << "Burn's Linear is [in, out]";
    EXPECT_TRUE(file.contains("norm.gamma"));
    Small again;
    load(again, path(name));
    EXPECT_EQ(again.fc.weight.contiguous().span<float>()[1], 3.0F);
    // The same through PyTorch's layout in Burn's container.
    save(to_checkpoint(model, Adapter::pytorch), path("torch-" + name));
    Small third;
    load(third, path("torch-" + name));
    EXPECT_EQ(third.fc.weight.contiguous().span<float>()[1], 3.0F);
  }
}

}  // namespace
}  // namespace ballast
