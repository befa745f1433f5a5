// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "ballast/load.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ops_tests::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Statistics {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Statistics of(const Tensor& x) {
  const Tensor wide = x.to(DType::f64);
  return {mean(wide).item(), std::sqrt(var(wide, {}, false, 0).item()), max(abs(wide)).item()};
}

// Drawn from the same distribution as torch's: a few thousand numbers agree in these to a few per cent, a few
// dozen to a third.
template <class Layer>
void expect_torchs_distribution(const std::string& name, Layer layer) {
  static const Json all = Json::parse(std::ifstream(BALLAST_TEST_DATA "/nn/init.json"));
  init(layer, 7);
  std::size_t compared = 0;
  for (const Entry& entry : to_checkpoint(layer)) {
    SCOPED_TRACE(name + " " + std::string(entry.name));
    const Json& expected = all.at(name).at(std::string(entry.name));
    ++compared;
    ASSERT_EQ(Dims(entry.shape), ops_tests::dims_of(expected["shape"]));
    const Statistics got = of(entry.tensor());
    const double deviation = expected["std"];
    const double slack = entry.tensor().numel() > 2000 ? 0.04 : 0.35;
    EXPECT_NEAR(got.deviation, deviation, slack * deviation + 1e-12);
    EXPECT_NEAR(got.mean, expected["mean"].get<double>(), slack * deviation * 2 + 1e-7);
    if (expected["largest"].get<double>() < 2 * deviation) {  // uniform
      EXPECT_NEAR(got.largest, expected["largest"].get<double>(), slack * deviation);
    }
    if (deviation == 0) {
      EXPECT_NEAR(got.largest, expected["largest"].get<double>(), 1e-7);
    }
  }
  EXPECT_EQ(compared, all.at(name).size());
}

TEST(Init, DrawsWhatTorchDraws) {
  expect_torchs_distribution("Linear", nn::Linear(300, 200));
  expect_torchs_distribution("Bilinear", nn::Bilinear(20, 50, 60));
  expect_torchs_distribution("Conv2d", nn::Conv2d(32, 64, 3, {.groups = 2}));
  expect_torchs_distribution("ConvTranspose2d", nn::ConvTranspose2d(32, 64, 3, {.groups = 2}));
  expect_torchs_distribution("BatchNorm2d", nn::BatchNorm2d(50));
  expect_torchs_distribution("LayerNorm", nn::LayerNorm(50));
  expect_torchs_distribution("GroupNorm", nn::GroupNorm(5, 50));
  expect_torchs_distribution("Embedding", nn::Embedding(300, 100, {.padding_idx = -1}));
  expect_torchs_distribution("PReLU", nn::PReLU(40, 0.4));
  expect_torchs_distribution("LSTM", nn::LSTM(100, 90, {.proj_size = 40}));
  expect_torchs_distribution("GRU", nn::GRU(100, 90, {.bidirectional = true}));
  expect_torchs_distribution("RNN", nn::RNN(100, 90));
  expect_torchs_distribution("MultiheadAttention", nn::MultiheadAttention(120, 4, {.add_bias_kv = true}));
  expect_torchs_distribution("MultiheadAttentionOfSizes",
                             nn::MultiheadAttention(120, 4, {.kdim = 60, .vdim = 30}));
}

struct Pair {
  nn::Linear first{4, 4};
  nn::Linear second{4, 4};
};

TEST(Init, LeavesWhatIsThere) {
  Pair model;
  model.first.weight = eye(4, 4);
  EXPECT_THAT(init(model), ElementsAre("first.bias", "second.weight", "second.bias"));
  EXPECT_EQ(model.first.weight.span<float>()[0], 1.0F);
  EXPECT_THAT(init(model), ElementsAre());
}

TEST(Init, TheSeedDecides) {
  Pair a;
  Pair b;
  Pair c;
  init(a, 1);
  init(b, 1);
  init(c, 2);
  EXPECT_EQ(ops_tests::error_of(a.first.weight, b.first.weight), 0);
  EXPECT_GT(ops_tests::error_of(a.first.weight, c.first.weight), 0.1);
  EXPECT_GT(ops_tests::error_of(a.first.weight, a.second.weight), 0.1);
}

TEST(Init, APaddingRowIsZero) {
  nn::Embedding table(5, 3, {.padding_idx = 2});
  init(table);
  EXPECT_EQ(max(abs(table.weight.narrow(0, 2, 1))).item(), 0);
  EXPECT_GT(min(max(abs(table.weight.narrow(0, 3, 2)), {1})).item(), 0);
}

TEST(Init, MissingParametersAreDrawnByLoad) {
  nn::Embedding table(5, 3, {.padding_idx = 0});
  const LoadReport report = load(table, Checkpoint(), {.missing = OnMissing::init});
  EXPECT_EQ(report.initialized.size(), 1U);
  EXPECT_EQ(max(abs(table.weight.narrow(0, 0, 1))).item(), 0);
}

TEST(Init, ATensorWithoutShapeIsRefused) {
  struct Bare {
    Tensor table;
  } model;
  try {
    init(model);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("table"));
  }
}

}  // namespace
}  // namespace ballast
