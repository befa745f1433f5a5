// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && all(a == b).item<bool>();
}

struct Net {
  nn::Linear first{4, 3};
  nn::Sequential<nn::ReLU, nn::Linear> rest{{}, {3, 2}};

  [[nodiscard]] Tensor forward(const Tensor& x) const { return rest(first(x)); }

  // As the layers have it.
  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }
};

template <class Model, class... Args>
void expect_call_is_forward(Model model, const Args&... args) {
  init(model, 1);
  EXPECT_TRUE(same(model(args...), model.forward(args...)));
}

TEST(Call, OfALayerIsItsForward) {
  Generator generator(1);
  const Tensor rows = rand({2, 4}, generator);
  const Tensor image = rand({1, 2, 8, 8}, generator);
  const Tensor steps = rand({3, 1, 4}, generator);
  expect_call_is_forward(nn::Linear(4, 3), rows);
  expect_call_is_forward(nn::Linear(4, 3), rows, Activation(Activation::Kind::relu));
  expect_call_is_forward(nn::Bilinear(4, 4, 2), rows, rows);
  expect_call_is_forward(nn::Conv2d(2, 3, 3), image);
  expect_call_is_forward(nn::ConvTranspose2d(2, 3, 3), image);
  expect_call_is_forward(nn::BatchNorm2d(2), image);
  expect_call_is_forward(nn::InstanceNorm2d(2), image);
  expect_call_is_forward(nn::GroupNorm(2, 2), image);
  expect_call_is_forward(nn::LayerNorm(4), rows);
  expect_call_is_forward(nn::RMSNorm(4), rows);
  expect_call_is_forward(nn::MaxPool2d(2), image);
  expect_call_is_forward(nn::AdaptiveAvgPool2d(2), image);
  expect_call_is_forward(nn::AdaptiveMaxPool2d(2), image);
  expect_call_is_forward(nn::Embedding(5, 3), Tensor::from({std::int64_t{4}, std::int64_t{0}}, {2}));
  expect_call_is_forward(nn::MultiheadAttention(4, 2), steps, steps, steps);
  expect_call_is_forward(nn::GELU{}, rows);
  expect_call_is_forward(nn::Identity{}, rows);
  expect_call_is_forward(Net{}, rows);
  nn::LSTM lstm(4, 3);
  init(lstm, 1);
  EXPECT_TRUE(same(lstm(steps).output, lstm.forward(steps).output));
}

}  // namespace
}  // namespace ballast
