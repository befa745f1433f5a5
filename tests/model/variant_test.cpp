// SPDX-License-Identifier: Apache-2.0
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// "enum_module" of README.md: one field, a plain or a depthwise separable convolution
struct Dws {
  nn::Conv2d dconv{2, 2, 3, {.groups = 2}};
  nn::Conv2d pconv{2, 2, 1};
};

struct Plain {
  Flat<nn::Conv2d> conv{{2, 2, 3}};
};

struct Model {
  std::variant<Dws, Plain> conv;
};

const std::vector<std::pair<std::string, Shape>> kPlain{{"conv.weight", {2, 2, 3, 3}}, {"conv.bias", {2}}};
const std::vector<std::pair<std::string, Shape>> kDws{{"conv.dconv.weight", {2, 1, 3, 3}},
                                                      {"conv.dconv.bias", {2}},
                                                      {"conv.pconv.weight", {2, 2, 1, 1}},
                                                      {"conv.pconv.bias", {2}}};

TEST(Variant, TheFileDecides) {
  Model model;
  EXPECT_TRUE(load(model, checkpoint(kPlain)).complete());
  ASSERT_EQ(model.conv.index(), 1U);
  EXPECT_EQ(floats(std::get<Plain>(model.conv).conv->weight),
            floats(checkpoint(kPlain).tensor("conv.weight")));
  EXPECT_TRUE(load(model, checkpoint(kDws)).complete());
  ASSERT_EQ(model.conv.index(), 0U);
  EXPECT_TRUE(std::get<Dws>(model.conv).pconv.bias.has_data());
}

TEST(Variant, AnAlternativeWithoutDefaultIsUsableWhenHeld) {
  struct Held {
    std::variant<Dws, nn::Conv2d> conv = nn::Conv2d{2, 2, 3};
  };

  Held model;
  EXPECT_TRUE(load(model, checkpoint(kPlain)).complete());
  EXPECT_TRUE(load(model, checkpoint(kDws)).complete());
  EXPECT_EQ(model.conv.index(), 0U);
  EXPECT_THAT(failed_load(model, checkpoint(kPlain)).text(), HasSubstr("Conv2d: has no default constructor"));
}

// Both alternatives have `weight`; the norm has more.
struct ConvLike {
  Tensor weight{DType::f32, {4}};
};

struct Norm {
  Flat<nn::BatchNorm2d> norm{nn::BatchNorm2d{4}};
};

TEST(Variant, TheWholeKeySetCounts) {
  struct Either {
    std::vector<std::variant<ConvLike, Norm>> layers = std::vector<std::variant<ConvLike, Norm>>(2);
  } model;

  const LoadReport report = load(model, checkpoint({{"layers.0.weight", {4}},
                                                    {"layers.0.bias", {4}},
                                                    {"layers.0.running_mean", {4}},
                                                    {"layers.0.running_var", {4}},
                                                    {"layers.1.weight", {4}}}));
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(model.layers[0].index(), 1U);
  EXPECT_EQ(model.layers[1].index(), 0U);
  EXPECT_THAT(report.unused, IsEmpty());
}

TEST(Variant, ShapesCount) {
  struct Small {
    Tensor w{DType::f32, {2}};
  };

  struct Large {
    Tensor w{DType::f32, {3}};
  };

  struct Sized {
    std::variant<Small, Large> part;
  } model;

  load(model, checkpoint({{"part.w", {3}}}));
  EXPECT_EQ(model.part.index(), 1U);
}

TEST(Variant, NoneThatFitsShowsWhyForEach) {
  Model model;
  const LoadReport report =
      failed_load(model, checkpoint({{"conv.weight", {2, 2, 5, 5}}, {"conv.bias", {2}}}));
  ASSERT_THAT(report.mismatched, SizeIs(1));
  EXPECT_EQ(report.mismatched[0].target, "conv");
  EXPECT_THAT(report.mismatched[0].reason, HasSubstr("Dws: \"conv.dconv.weight\" is not in the file"));
  EXPECT_THAT(report.mismatched[0].reason,
              HasSubstr("Plain: \"conv.weight\" is [2, 2, 5, 5] in the file and [2, 2, 3, 3] in the model"));
  EXPECT_EQ(model.conv.index(), 0U);
}

TEST(Variant, TwoThatFitAreAnErrorUnlessTheHeldOneIsAskedFor) {
  struct Fast {
    Tensor w{DType::f32, {2}};
  };

  struct Slow {
    Tensor w{DType::f32, {2}};
  };

  struct Twins {
    std::variant<Fast, Slow> part = Slow{};
  } model;

  EXPECT_THAT(failed_load(model, checkpoint({{"part.w", {2}}})).text(),
              HasSubstr("Fast and Slow fit the file equally well"));
  EXPECT_TRUE(load(model, checkpoint({{"part.w", {2}}}), {.variants = Variants::held}).complete());
  EXPECT_TRUE(std::get<Slow>(model.part).w.has_data());
}

TEST(Variant, AlternativesWithoutTensorsAreNotTheFilesBusiness) {
  struct Activated {
    nn::Linear fc{2, 2};
    std::variant<nn::ReLU, nn::GELU> activation = nn::GELU{};
    std::variant<std::monostate, nn::PReLU> shortcut;
  } model;

  load(model, checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}}));
  EXPECT_EQ(model.activation.index(), 1U);
  EXPECT_EQ(model.shortcut.index(), 0U);
  load(model, checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}, {"shortcut.weight", {1}}}));
  EXPECT_EQ(model.shortcut.index(), 1U);
}

TEST(Variant, NestedChoicesAreMadeTogether) {
  struct Inner {
    std::variant<ConvLike, Norm> op;
    std::optional<Tensor> scale;
  };

  struct Outer {
    std::variant<std::monostate, Inner> branch;
  } model;

  const LoadReport report = load(model, checkpoint({{"branch.op.weight", {4}},
                                                    {"branch.op.bias", {4}},
                                                    {"branch.op.running_mean", {4}},
                                                    {"branch.op.running_var", {4}},
                                                    {"branch.scale", {1}}}));
  EXPECT_THAT(report.unused, IsEmpty());
  const Inner& inner = std::get<Inner>(model.branch);
  EXPECT_TRUE(std::get<Norm>(inner.op).norm->running_var.has_data());
  EXPECT_TRUE(inner.scale && inner.scale->has_data());
}

TEST(Optional, EmptyOnesAreFilledWhenTheFileHasThem) {
  struct WithOptional {
    nn::Linear fc{2, 2};
    std::optional<Tensor> bias;
    std::optional<ConvLike> extra;
  };

  WithOptional model;
  EXPECT_TRUE(load(model, checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}})).complete());
  EXPECT_FALSE(model.bias || model.extra);
  EXPECT_TRUE(
      load(model, checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}, {"bias", {7}}, {"extra.weight", {4}}}))
          .complete());
  EXPECT_EQ(model.bias->shape(), (Shape{7}));
  EXPECT_TRUE(model.extra->weight.has_data());
  // Filled, it is a member like any other.
  EXPECT_THAT(targets(failed_load(model, checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}})).missing),
              ::testing::ElementsAre("bias", "extra.weight"));
  WithOptional wrong;
  EXPECT_THAT(
      failed_load(wrong, checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}, {"extra.weight", {5}}})).text(),
      HasSubstr("\"extra.weight\" is [5] in the file and [4] in the model"));
}

TEST(Variant, AFailedLoadLeavesTheAlternative) {
  struct Both {
    std::variant<Dws, Plain> conv;
    nn::Linear missing{1, 1};
  } model;

  EXPECT_THAT(failed_load(model, checkpoint(kPlain)).missing, SizeIs(2));
  EXPECT_EQ(model.conv.index(), 0U);
  EXPECT_FALSE(std::get<Dws>(model.conv).dconv.weight.has_data());
}

}  // namespace
}  // namespace ballast
