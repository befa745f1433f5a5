// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <variant>

#include "ballast/error.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using testing_kit::counting;
using testing_kit::same_values;

struct Block {
  nn::Linear linear{3, 3};
  Tensor scale{DType::f32, {3}};
  int width = 3;

  [[nodiscard]] Tensor forward(const Tensor& x) const { return linear(x) * scale; }
};

class Listed {
 public:
  Listed() = default;

  explicit Listed(int number) : number_(number) {}

  BALLAST_FIELDS(weight_, inner_);

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_ = 0;
  Tensor weight_{DType::f32, {2, 2}};
  std::shared_ptr<Block> inner_ = std::make_shared<Block>();
};

// A member of every kind load() fills.
struct Everything {
  Block block;
  Tensor without_shape;
  std::vector<Block> list = std::vector<Block>(2);
  std::array<nn::LayerNorm, 2> array{nn::LayerNorm(3), nn::LayerNorm(4)};
  std::tuple<nn::Linear, Block> tuple{nn::Linear(2, 2), Block{}};
  std::pair<Tensor, Tensor> pair{Tensor(DType::f32, {1}), Tensor(DType::f32, {2})};
  std::map<std::string, nn::Linear> map{{"a", {2, 3}}, {"b", {3, 2}}};
  std::optional<nn::Linear> held = nn::Linear(2, 2);
  std::optional<nn::Linear> empty;
  std::unique_ptr<Block> owned = std::make_unique<Block>();
  std::vector<std::unique_ptr<Block>> owned_list;
  std::unique_ptr<Block> nothing;
  std::shared_ptr<Block> shared = std::make_shared<Block>();
  std::variant<std::monostate, nn::Conv2d, nn::Linear> variant = nn::Linear(2, 5);
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear> sequence{{2, 3}, {}, {3, 2}};
  Listed listed{7};
  Flat<nn::Linear> flat{{2, 2}};
  Skip<std::vector<int>> skipped{{1, 2, 3}};
  std::string name = "everything";
  double number = 0.5;
};

template <class Model>
std::vector<Tensor*> tensors_of(Model& model) {
  std::vector<Tensor*> all;
  for_each_tensor(model, [&](std::string_view, Tensor& tensor, LayerKind) { all.push_back(&tensor); });
  return all;
}

template <class Model>
void fill(Model& model) {
  float first = 1;
  for (Tensor* tensor : tensors_of(model)) {
    *tensor = counting(tensor->shape(), first);
    first += static_cast<float>(tensor->numel());
  }
}

TEST(Copy, OfEveryKindOfMemberHasTheSameValuesInMemoryOfItsOwn) {
  Everything model;
  model.owned_list.push_back(std::make_unique<Block>());
  fill(model);
  Everything other = copy(model);
  const auto mine = tensors_of(model);
  const auto copies = tensors_of(other);
  ASSERT_EQ(mine.size(), copies.size());
  ASSERT_GT(mine.size(), 30U);
  std::vector<Tensor> before;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    ASSERT_NE(mine[i], copies[i]);
    before.push_back(mine[i]->clone());
    EXPECT_TRUE(same_values(*mine[i], *copies[i])) << i;
    EXPECT_NE(mine[i]->storage(), copies[i]->storage()) << i;
    *copies[i] += 1000;  // own memory may be written
  }
  for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(same_values(*mine[i], before[i])) << i;
  EXPECT_EQ(other.name, "everything");
  EXPECT_EQ(other.listed.number(), 7);
  EXPECT_EQ(*other.skipped, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(other.empty.has_value());
  EXPECT_EQ(other.nothing, nullptr);
  EXPECT_NE(other.shared, model.shared);
  EXPECT_TRUE(std::holds_alternative<nn::Linear>(other.variant));
}

struct Tied {
  nn::Embedding tokens{5, 3};
  nn::Linear head{3, 5, {.bias = false}};
  Tensor part;
  Tensor neighbour;
  std::shared_ptr<Block> one;
  std::shared_ptr<Block> same;
};

TEST(Copy, WhatIsTiedStaysTied) {
  Tied model;
  const Tensor whole = counting({40});
  model.tokens.weight = whole.narrow(0, 2, 15).reshape({5, 3});
  model.head.weight = model.tokens.weight.t();  // the same bytes, another way round
  model.part = model.tokens.weight[1];
  model.neighbour = whole.narrow(0, 20, 4);  // of one storage, and not tied
  model.one = model.same = std::make_shared<Block>();
  model.one->scale = counting({3});
  Tied other = copy(model);
  EXPECT_EQ(other.tokens.weight.storage(), other.head.weight.storage());
  EXPECT_EQ(other.tokens.weight.storage(), other.part.storage());
  EXPECT_NE(other.tokens.weight.storage(), other.neighbour.storage());
  EXPECT_EQ(other.tokens.weight.storage()->size(), 15 * sizeof(float));  // not the whole
  EXPECT_EQ(other.one, other.same);
  EXPECT_NE(other.one, model.one);
  other.tokens.weight += 100;
  EXPECT_TRUE(same_values(other.head.weight, model.head.weight + 100));
  EXPECT_TRUE(same_values(other.part, model.part + 100));
  EXPECT_TRUE(same_values(other.neighbour, whole.narrow(0, 20, 4)));
  EXPECT_TRUE(same_values(model.tokens.weight, whole.narrow(0, 2, 15).reshape({5, 3})));
}

TEST(Copy, OfViewsInEveryDirectionShowsTheSame) {
  struct Views {
    std::vector<Tensor> tensors;
  };
  const Tensor whole = counting({6, 7});
  const Views model{{whole, whole.t(), whole.index({Slice{{}, {}, -1}, Slice{{}, {}, -2}}),
                     whole.narrow(1, 2, 3), whole[5], whole[2][3], whole[0].expand({4, 7}),
                     whole.narrow(0, 6, 0)}};
  const Views other = copy(model);
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    EXPECT_TRUE(same_values(other.tensors[i], model.tensors[i])) << i;
    if (model.tensors[i].numel() > 0) {
      EXPECT_NE(other.tensors[i].storage(), whole.storage());
      EXPECT_EQ(other.tensors[i].storage(), other.tensors[0].storage());
    }
  }
}

TEST(Copy, WithoutBytesHasTheShapes) {
  const Everything model;
  const Everything other = copy(model);
  std::vector<Shape> shapes;
  for_each_tensor(
      model, [&](std::string_view, const Tensor& tensor, LayerKind) { shapes.push_back(tensor.shape()); });
  std::size_t i = 0;
  for_each_tensor(other, [&](std::string_view, const Tensor& tensor, LayerKind) {
    EXPECT_FALSE(tensor.has_data());
    EXPECT_EQ(tensor.shape(), shapes.at(i++));
  });
  EXPECT_EQ(i, shapes.size());
}

TEST(Copy, OfAFoldedNormIsFolded) {
  struct Net {
    nn::Sequential<nn::Conv2d, nn::BatchNorm2d> layers{{1, 2, 1}, {2}};
  };
  Net net;
  fill(net);
  net.layers.get<1>().num_batches_tracked = Tensor::from({std::int64_t{1}}, {});
  fuse(net);
  ASSERT_TRUE(net.layers.get<1>().folded());
  const Net other = copy(net);
  EXPECT_TRUE(other.layers.get<1>().folded());
  const Tensor x = counting({1, 1, 2, 2});
  EXPECT_TRUE(same_values(other.layers(x), net.layers(x)));
}

struct Base {
  virtual ~Base() = default;
  Tensor weight;

  BALLAST_FIELDS(weight);
};

struct Derived : Base {
  int more = 1;
};

TEST(Copy, OfADerivedObjectBehindItsBaseIsRefused) {
  struct Model {
    std::unique_ptr<Base> base = std::make_unique<Derived>();
  };
  try {
    static_cast<void>(copy(Model{}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
  }
}

}  // namespace
}  // namespace ballast
