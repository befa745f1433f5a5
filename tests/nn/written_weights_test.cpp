// SPDX-License-Identifier: Apache-2.0
// Weights that were written to after a layer prepared something from them: the next answer is that of the new
// ones.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "ballast/module.h"
#include "ballast/nn.h"
#include "ops/cache.h"
#include "ops/cases.h"
#include "tensor/copy.h"

namespace ballast {
namespace {

using Tensors = std::vector<Tensor>;

// Every way in which a program gets at the bytes.
const std::map<std::string, std::function<std::byte*(Tensor&)>> kWays = {
    {"mutable_data", [](Tensor& t) { return t.mutable_data(); }},
    {"mutable_span", [](Tensor& t) { return reinterpret_cast<std::byte*>(t.mutable_span<float>().data()); }},
    {"a view",
     [](Tensor& t) {
       Tensor view = t.reshape({-1});
       return view.mutable_data();
     }},
    {"another tensor of the storage",
     [](Tensor& t) {
       Tensor other = Tensor::contiguous_view(DType::f32, {t.numel()}, t.storage());
       return other.mutable_data();
     }},
    {"the storage", [](Tensor& t) { return const_cast<Storage&>(*t.storage()).mutable_data(); }},
};

Tensors results(const Tensor& one) {
  return {one};
}

Tensors results(const LstmResult& all) {
  return {all.output, all.hidden, all.cell};
}

Tensors results(const RecurrentResult& all) {
  return {all.output, all.hidden};
}

template <class Layer>
struct Holder {
  Layer layer;
};

// Each parameter in turn; a copy of the layer prepares everything anew.
template <class Layer>
void expect_notices_writes(Layer layer, const std::vector<Shape>& inputs) {
  Holder<Layer> model{std::move(layer)};
  init(model, 3);
  Generator generator(4);
  const Slots slots = detail::collect_slots(model, detail::Collector::Alternatives::held_only);
  for (const Slot& slot : slots.slots) *slot.tensor = slot.tensor->contiguous().clone();
  for (const Shape& shape : inputs) {
    const Tensor x = randn(shape, generator);
    for (const auto& [name, bytes_of] : kWays) {
      for (const Slot& slot : slots.slots) {
        SCOPED_TRACE(slot.path + " by " + name + " for " + to_string(shape));
        static_cast<void>(model.layer.forward(x));
        const Tensor other = randn(slot.tensor->shape(), generator);
        copy_contiguous(other, bytes_of(*slot.tensor));
        const Layer fresh = model.layer;
        const Tensors got = results(model.layer.forward(x));
        const Tensors expected = results(fresh.forward(x));
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_LE(ops_tests::error_of(got[i], expected[i]), 1e-6);
      }
    }
  }
}

TEST(WrittenWeights, LinearNoticesThem) {
  expect_notices_writes(nn::Linear(150, 160), {{1, 150}, {2, 150}, {4, 150}, {40, 150}});
  expect_notices_writes(nn::Linear(3, 2), {{1, 3}, {5, 3}});
}

TEST(WrittenWeights, ConvolutionsNoticeThem) {
  expect_notices_writes(nn::Conv1d(8, 8, 3), {{1, 8, 9}});
  expect_notices_writes(nn::Conv2d(8, 16, 3, {.padding = 1}), {{1, 8, 9, 9}, {4, 8, 9, 9}});
  expect_notices_writes(nn::Conv2d(8, 8, 3, {.groups = 8}), {{1, 8, 9, 9}});
  expect_notices_writes(nn::Conv3d(2, 3, 2), {{2, 2, 4, 4, 4}});
  expect_notices_writes(nn::ConvTranspose2d(8, 4, 2, {.stride = 2}), {{1, 8, 5, 5}});
}

TEST(WrittenWeights, RecurrentLayersNoticeThem) {
  expect_notices_writes(nn::LSTM(6, 8, {.num_layers = 2, .bidirectional = true}), {{5, 1, 6}, {5, 4, 6}});
  expect_notices_writes(nn::LSTM(6, 8, {.proj_size = 3}), {{5, 2, 6}});
  expect_notices_writes(nn::GRU(6, 8), {{5, 1, 6}, {5, 4, 6}});
  expect_notices_writes(nn::RNN(6, 8), {{5, 1, 6}, {5, 4, 6}});
}

TEST(WrittenWeights, AttentionNoticesThem) {
  expect_notices_writes(nn::MultiheadAttention(16, 4), {{1, 1, 16}, {7, 2, 16}});
}

TEST(WrittenWeights, WhatWasMadeFromOldOnesIsGivenUp) {
  Generator generator(1);
  Tensor weight = randn({64, 64}, generator);
  const Tensor x = randn({16, 64}, generator);
  OpCache cache;
  for (int i = 0; i < 5; ++i) {
    weight.mutable_span<float>()[0] = static_cast<float>(i);
    static_cast<void>(linear(x, weight, {}, {.cache = &cache}));
    EXPECT_EQ(cache.state().entries.size(), 1U);
  }
}

TEST(MisalignedWeights, AreCopiedOnce) {
  Generator generator(1);
  const Tensor turned = ops_tests::at_offset(randn({70, 64}, generator), 3).t();
  for (const Tensor& weight : {turned, ops_tests::at_offset(randn({64, 70}, generator), 1)}) {
    for (const std::int64_t rows : {1, 3, 4, 16}) {
      const Tensor x = randn({rows, 64}, generator);
      OpCache cache;
      static_cast<void>(linear(x, weight, {}, {.cache = &cache}));
      ASSERT_EQ(cache.state().entries.size(), 1U) << rows;
      const void* prepared = cache.state().entries.front().prepared.get();
      static_cast<void>(linear(x, weight, {}, {.cache = &cache}));
      EXPECT_EQ(cache.state().entries.size(), 1U) << rows;
      EXPECT_EQ(cache.state().entries.front().prepared.get(), prepared) << rows;
    }
  }
}

}  // namespace
}  // namespace ballast
