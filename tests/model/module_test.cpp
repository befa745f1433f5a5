// SPDX-License-Identifier: Apache-2.0
#include "ballast/module.h"

#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <sstream>

#include "ballast/error.h"
#include "ballast/nn.h"

namespace ballast {
namespace {

using ::testing::ElementsAre;

template <class Model>
std::vector<std::string> paths(const Model& model) {
  std::vector<std::string> found;
  for_each_tensor(model, [&](std::string_view path, const Tensor&, LayerKind) { found.emplace_back(path); });
  return found;
}

struct Block {
  nn::Conv2d conv{4, 4, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm{4};
};

struct Net {
  nn::Conv2d stem{3, 4, {7, 7}, {.stride = 2, .padding = 3}};
  std::vector<Block> blocks = nn::repeat<Block>(2);
  nn::Linear head{4, 10};
};

TEST(Module, FieldsAreTheNames) {
  EXPECT_THAT(paths(Net{}),
              ElementsAre("stem.weight", "stem.bias", "blocks.0.conv.weight", "blocks.0.norm.gamma",
                          "blocks.0.norm.beta", "blocks.0.norm.running_mean", "blocks.0.norm.running_var",
                          "blocks.0.norm.num_batches_tracked", "blocks.1.conv.weight", "blocks.1.norm.gamma",
                          "blocks.1.norm.beta", "blocks.1.norm.running_mean", "blocks.1.norm.running_var",
                          "blocks.1.norm.num_batches_tracked", "head.weight", "head.bias"));
}

struct Pair {
  Tensor a;
  Tensor b;
};

enum class Colour { red };

struct Everything {
  Tensor bare{DType::f32, {2}};
  Pair nested;
  std::vector<Tensor> vector{Tensor{}, Tensor{}};
  std::array<nn::Linear, 2> array{nn::Linear{1, 2, {.bias = false}}, nn::Linear{2, 3, {.bias = false}}};
  std::tuple<Tensor, nn::PReLU> tuple;
  std::optional<Tensor> filled = Tensor{};
  std::optional<Tensor> empty;
  std::unique_ptr<Pair> owned = std::make_unique<Pair>();
  std::unique_ptr<Pair> null;
  std::shared_ptr<Tensor> shared = std::make_shared<Tensor>();
  std::map<std::string, Tensor> map{{"x", {}}, {"y", {}}};
  std::variant<std::monostate, Pair, Tensor> variant = Pair{};
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear> sequential{{2, 3}, {}, {3, 4, {.bias = false}}};
  std::vector<std::vector<Tensor>> deep{{Tensor{}}, {}, {Tensor{}}};
  int count = 3;
  bool flag = true;
  double rate = 0.1;
  Colour colour = Colour::red;
  std::string text = "hello";
  const char* literal = "literal";
  std::function<int(int)> callback;
  std::vector<int> sizes{1, 2};
  std::map<std::string, std::string> settings;
  std::optional<double> limit;
  std::array<std::pair<int, float>, 2> table{};
  Skip<std::deque<int>> queue;
  Flat<nn::Linear> flat{{1, 1, {.bias = false}}};
  Tensor default_;
};

TEST(Module, EveryKindOfMemberHasItsPath) {
  EXPECT_THAT(
      paths(Everything{}),
      ElementsAre("bare", "nested.a", "nested.b", "vector.0", "vector.1", "array.0.weight", "array.1.weight",
                  "tuple.0", "tuple.1.alpha", "filled", "owned.a", "owned.b", "shared", "map.x", "map.y",
                  "variant.a", "variant.b", "sequential.0.weight", "sequential.0.bias", "sequential.2.weight",
                  "deep.0.0", "deep.2.0", "weight", "default"));
}

class Private {
 public:
  explicit Private(int count) : tensors_(static_cast<std::size_t>(count)) {}

  virtual ~Private() = default;
  BALLAST_FIELDS(tensors_, second_);

 private:
  std::vector<Tensor> tensors_;
  Tensor second_;
  [[maybe_unused]] int secret_ = 0;
};

TEST(Module, ListedFieldsServeClassesThatAreNoAggregates) {
  EXPECT_THAT(paths(Private(2)), ElementsAre("tensors.0", "tensors.1", "second"));
}

struct Renamed {
  Tensor first;
  Tensor second;

  static void visit_fields(auto& self, auto&& visit) {
    visit("class.0", self.first);
    visit("", self.second);
  }
};

struct HoldsUnderscores {
  std::map<std::string, Tensor> map{{"x_", {}}};
  Tensor value_;
};

TEST(Module, OnlyFieldsLoseTheirUnderscore) {
  EXPECT_THAT(paths(HoldsUnderscores{}), ElementsAre("map.x_", "value"));
}

struct HoldsRenamed {
  std::vector<Renamed> items = std::vector<Renamed>(1);
};

TEST(Module, HandWrittenFieldsChooseTheirNames) {
  EXPECT_THAT(paths(HoldsRenamed{}), ElementsAre("items.0.class.0", "items.0"));
}

struct Sixty4 {
  Tensor a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
      a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40,
      a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61,
      a62, a63;
};

TEST(Module, SixtyFourFields) {
  const auto found = paths(Sixty4{});
  ASSERT_EQ(found.size(), 64U);
  EXPECT_EQ(found.front(), "a00");
  EXPECT_EQ(found.back(), "a63");
}

struct OwnLinear {
  static constexpr LayerKind kind = LayerKind::linear;
  Tensor weight{DType::f32, {2, 3}};
};

struct Linear {  // the name means nothing
  Tensor weight{DType::f32, {2, 3}};
};

struct Kinds {
  OwnLinear own;
  Linear impostor;
  nn::LSTM lstm{2, 3, {.num_layers = 2, .bidirectional = true, .proj_size = 1}};
};

TEST(Module, KindIsATraitAndNotAName) {
  const Kinds model;
  std::map<std::string, LayerKind> kinds;
  for_each_tensor(model,
                  [&](std::string_view path, const Tensor&, LayerKind kind) { kinds.emplace(path, kind); });
  EXPECT_EQ(kinds.at("own.weight"), LayerKind::linear);
  EXPECT_EQ(kinds.at("impostor.weight"), LayerKind::none);
  EXPECT_EQ(kinds.at("lstm.weight_hr_l1_reverse"), LayerKind::lstm);
}

struct KindOfTensor {
  Tensor kind{DType::f32, {2}};
};

struct KindOfSetting {
  LayerKind kind = LayerKind::linear;
  Tensor weight{DType::f32, {2, 3}};
};

struct KindsAsMembers {
  KindOfTensor kind;
  KindOfSetting other;
};

TEST(Module, AMemberCalledKindIsAMemberLikeAnyOther) {
  std::vector<std::pair<std::string, LayerKind>> seen;
  for_each_tensor(KindsAsMembers{}, [&](std::string_view path, const Tensor&, LayerKind kind) {
    seen.emplace_back(path, kind);
  });
  EXPECT_THAT(seen, ElementsAre(testing::Pair("kind.kind", LayerKind::none),
                                testing::Pair("other.weight", LayerKind::none)));
}

TEST(Module, SlotsKnowLayersAndPositions) {
  const Net net;
  const Slots slots = detail::collect_slots(net, detail::Collector::Alternatives::all);
  const Slot& gamma = slots.slots[3];
  EXPECT_EQ(gamma.path, "blocks.0.norm.gamma");
  EXPECT_EQ(gamma.layer(), "blocks.0.norm");
  EXPECT_EQ(gamma.field(), "gamma");
  EXPECT_EQ(gamma.index_segments, 0b10U);
  EXPECT_EQ(slots.slots[0].index_segments, 0U);
}

struct Dws {
  nn::Conv2d dconv{2, 2, 3, {.groups = 2}};
  nn::Conv2d pconv{2, 2, 1};
};

struct WithVariant {
  std::variant<Dws, nn::Conv2d> conv;
  std::optional<Tensor> extra;
};

TEST(Module, AlternativesAreCollectedOnRequest) {
  WithVariant model;
  const Slots slots = detail::collect_slots(model, detail::Collector::Alternatives::all);
  ASSERT_EQ(slots.choices.size(), 2U);
  EXPECT_EQ(slots.choices[0].path, "conv");
  EXPECT_EQ(slots.choices[0].alternatives.size(), 2U);
  EXPECT_EQ(slots.alternatives[0].type, "Dws");
  EXPECT_FALSE(slots.alternatives[1].can_be_built);  // Conv2d has no default constructor
  EXPECT_TRUE(slots.choices[1].optional);
  ASSERT_EQ(slots.slots.size(), 5U);
  EXPECT_EQ(slots.slots[0].alternative, 0U);
  EXPECT_EQ(slots.slots[4].path, "extra");
  slots.alternatives[2].commit();
  EXPECT_TRUE(model.extra.has_value());
  EXPECT_EQ(paths(model).size(), 5U);
}

TEST(Module, TensorsCanBeChanged) {
  Net net;
  for_each_tensor(net, [](std::string_view, Tensor& tensor, LayerKind) {
    tensor = Tensor::zeros(tensor.dtype(), tensor.shape());
  });
  EXPECT_TRUE(net.blocks[1].norm.running_var.has_data());
}

TEST(Module, ParametersLeaveOutBuffers) {
  std::vector<std::string> found;
  for (const Parameter& parameter : parameters(Block{})) found.push_back(parameter.path);
  EXPECT_THAT(found, ElementsAre("conv.weight", "norm.gamma", "norm.beta"));
}

TEST(Module, PrintsATreeWithShapesAndCounts) {
  struct Small {
    nn::Conv2d stem{3, 4, 1};
    std::vector<Block> blocks = nn::repeat<Block>(1);
    Tensor position{DType::f32, {5, 4}};
    nn::ReLU relu;
  };

  std::ostringstream text;
  print(Small{}, text);
  EXPECT_EQ(text.str(),
            "Small (188)\n"
            "  stem: Conv2d(weight [4, 3, 1, 1], bias [4])\n"
            "  blocks.0: Block (152)\n"
            "    conv: Conv2d(weight [4, 4, 3, 3])\n"
            "    norm: BatchNorm2d(gamma [4], beta [4], running_mean [4], running_var [4], "
            "num_batches_tracked [])\n"
            "  position: F32 [5, 4]\n"
            "  relu: ReLU\n"
            "Small: 188 parameters\n");
}

struct Recursive {
  Tensor weight;
  std::unique_ptr<Recursive> next;
};

TEST(Module, AListOfPointersIsWalkedToItsEnd) {
  Recursive list{.weight = {}, .next = std::make_unique<Recursive>()};
  EXPECT_THAT(paths(list), ElementsAre("weight", "next.weight"));
}

TEST(Module, ACycleOfPointersIsAnErrorAndNotACrash) {
  struct Cyclic {
    Tensor weight;
    std::shared_ptr<Cyclic> next;
  };

  auto a = std::make_shared<Cyclic>();
  a->next = a;
  EXPECT_THROW(paths(*a), Error);
  a->next = nullptr;
}

}  // namespace
}  // namespace ballast
