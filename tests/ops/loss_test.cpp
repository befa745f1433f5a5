// SPDX-License-Identifier: Apache-2.0
// What losses, boxes and pools with indices refuse, and the edges no random case has.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "ballast/error.h"
#include "ballast/graph.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

Tensor floats(const Shape& shape) {
  return Tensor::zeros(DType::f32, shape);
}

Tensor numbers(const std::vector<std::int64_t>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

using Work = std::function<Tensor()>;

std::optional<Errc> code_of(const Work& work) {
  try {
    static_cast<void>(work());
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

void expect_all(Errc code, const std::vector<Work>& calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(code_of(calls[i]), code) << i;
}

TEST(Losses, RefuseShapesThatDoNotFit) {
  expect_all(Errc::shape_mismatch,
             {[] {
                return cross_entropy(floats({2, 3}), numbers({0}));
              },
              [] { return cross_entropy(floats({}), floats({})); },
              [] {
                return nll_loss(floats({2, 3}), numbers({0, 1}), {.weight = floats({2})});
              },
              [] { return binary_cross_entropy(floats({2}), floats({3})); },
              [] {
                return binary_cross_entropy_with_logits(floats({2}), floats({2, 1}));
              },
              [] {
                return multi_margin_loss(floats({2, 3, 4}), Tensor::zeros(DType::i64, {2, 4}));
              },
              [] {
                return multilabel_margin_loss(floats({2, 3}), numbers({0, 1}));
              },
              [] {
                return cosine_embedding_loss(floats({2, 3}), floats({2, 3}), floats({2, 3}));
              },
              [] {
                return gaussian_nll_loss(floats({2, 3}), floats({2, 3}), floats({3}));
              },
              [] { return mse_loss(floats({2}), floats({3})); },
              [] {
                return ctc_loss(floats({4, 2, 3}), numbers({1, 1}), numbers({4}), numbers({1, 1}));
              }});
}

TEST(Losses, RefuseClassesThereAreNot) {
  expect_all(Errc::offset_out_of_range,
             {[] {
                return cross_entropy(floats({2, 3}), numbers({0, 3}));
              },
              [] {
                return cross_entropy(floats({2, 3}), numbers({0, -1}));
              },
              [] {
                return multilabel_margin_loss(floats({1, 3}), Tensor::from({0, 3, -1}, {1, 3}));
              },
              [] {
                return ctc_loss(floats({4, 1, 3}), numbers({3}), numbers({4}), numbers({1}));
              },
              [] {
                return ctc_loss(floats({4, 1, 3}), numbers({1}), numbers({5}), numbers({1}));
              },
              [] {
                return ctc_loss(floats({4, 2, 3}), numbers({1, 1}), numbers({4, 4}), numbers({1, 2}));
              },
              [] {
                return ctc_loss(floats({4, 1, 3}), numbers({1}), numbers({4}), numbers({-1}));
              }});
}

TEST(Losses, RefuseArgumentsThatMeanNothing) {
  expect_all(Errc::invalid_argument,
             {[] { return binary_cross_entropy(full({2}, 1.5), floats({2})); },
              [] { return binary_cross_entropy(full({2}, NAN), floats({2})); },
              [] { return gaussian_nll_loss(floats({2}), floats({2}), full({2}, -1)); },
              [] { return huber_loss(floats({2}), floats({2}), 0); },
              [] { return smooth_l1_loss(floats({2}), floats({2}), -1); },
              [] {
                return cross_entropy(floats({2, 3}), numbers({0, 1}), {.label_smoothing = 2});
              },
              [] {
                return cross_entropy(floats({2, 3}), floats({2, 3}), {.ignore_index = 1});
              },
              [] {
                return multi_margin_loss(floats({2, 3}), numbers({0, 1}), {.p = 3});
              },
              [] { return mse_loss(floats({2}), floats({2}), LossReduction::batchmean); },
              [] {
                return ctc_loss(floats({4, 1, 3}), numbers({1}), numbers({4}), numbers({1}), {.blank = 3});
              }});
  expect_all(Errc::bad_dtype, {[] { return mse_loss(numbers({1}), numbers({1})); },
                               [] {
                                 return cross_entropy(numbers({1, 2}), numbers({1}));
                               },
                               [] {
                                 return nll_loss(floats({2, 3}), floats({2}));
                               }});
}

// As PyTorch: the mean of nothing.
TEST(Losses, OfIgnoredTargetsAloneAreNaN) {
  const Tensor x = ones({2, 3});
  EXPECT_TRUE(std::isnan(cross_entropy(x, numbers({-100, -100})).item()));
  EXPECT_EQ(cross_entropy(x, numbers({-100, -100}), {.reduction = LossReduction::sum}).item(), 0);
  EXPECT_TRUE(std::isnan(mse_loss(floats({0}), floats({0})).item()));
}

// What an ignored sample has in it is nobody's business.
TEST(Losses, IgnoredSamplesMayBeNaN) {
  const Tensor x = Tensor::from({NAN, NAN, 1.0F, 2.0F}, {2, 2});
  EXPECT_NEAR(cross_entropy(x, numbers({-100, 1})).item(), std::log1p(std::exp(-1.0)), 1e-6);
}

TEST(Losses, OfLargeNumbersDoNotOverflow) {
  const Tensor x = Tensor::from({1000.0F, -1000.0F}, {1, 2});
  EXPECT_EQ(cross_entropy(x, numbers({1})).item(), 2000);
  EXPECT_EQ(cross_entropy(x.to(DType::f64), numbers({1})).item(), 2000);
  EXPECT_EQ(binary_cross_entropy_with_logits(x, zeros({1, 2})).item(), 500);
  EXPECT_EQ(binary_cross_entropy(Tensor::from({0.0F, 1.0F}, {2}), Tensor::from({1.0F, 0.0F}, {2})).item(),
            100);
}

TEST(Losses, OfATargetThatDoesNotFitItsTimeAreInfinite) {
  const Tensor logs = log_softmax(floats({2, 1, 3}), -1);
  const auto loss = [&](const CtcLossArgs& args) {
    return ctc_loss(logs, numbers({1, 1}), numbers({2}), numbers({2}), args).item();  // needs a blank between
  };
  EXPECT_EQ(loss({}), INFINITY);
  EXPECT_EQ(loss({.zero_infinity = true}), 0);
  // An empty target is read from blanks alone; no time reads the empty target alone.
  EXPECT_NEAR(ctc_loss(logs, numbers({1}), numbers({2}), numbers({0})).item(), 2 * std::log(3.0), 1e-6);
  EXPECT_EQ(ctc_loss(logs, numbers({1}), numbers({0}), numbers({0})).item(), 0);
  EXPECT_EQ(ctc_loss(logs, numbers({1}), numbers({0}), numbers({1})).item(), INFINITY);
}

TEST(Boxes, RefuseWhatIsNone) {
  expect_all(Errc::shape_mismatch, {[] {
                                      return nms(floats({3, 5}), floats({3}), 0.5);
                                    },
                                    [] {
                                      return nms(floats({3, 4}), floats({2}), 0.5);
                                    },
                                    [] {
                                      return nms(Tensor::zeros(DType::i64, {3, 4}), floats({3}), 0.5);
                                    },
                                    [] {
                                      return batched_nms(floats({3, 4}), floats({3}), numbers({1}), 0.5);
                                    },
                                    [] {
                                      return roi_align(floats({1, 2, 3, 4}), floats({2, 4}));
                                    },
                                    [] {
                                      return roi_align(floats({2, 3, 4}), floats({2, 5}));
                                    },
                                    [] {
                                      return roi_align(floats({1, 2, 0, 4}), floats({2, 5}));
                                    },
                                    [] {
                                      return roi_align(floats({2, 2, 3, 4}), std::vector{floats({1, 4})});
                                    }});
  const auto in_box = [](float image, float x1, float x2, const RoiAlignArgs& args = {}) {
    return code_of([&] {
      return roi_align(floats({1, 1, 4, 4}), Tensor::from({image, x1, 0.0F, x2, 2.0F}, {1, 5}), args);
    });
  };
  EXPECT_EQ(in_box(0, 0, 2), std::nullopt);
  EXPECT_EQ(in_box(1, 0, 2), Errc::offset_out_of_range);
  EXPECT_EQ(in_box(-1, 0, 2), Errc::offset_out_of_range);
  EXPECT_EQ(in_box(NAN, 0, 2), Errc::offset_out_of_range);
  EXPECT_EQ(in_box(0, NAN, 2), Errc::invalid_argument);
  EXPECT_EQ(in_box(0, 0, INFINITY), Errc::invalid_argument);
  EXPECT_EQ(in_box(0, 0, 1e30F), Errc::size_overflow);
  EXPECT_EQ(in_box(0, 0, 2, {.output_size = {0}}), Errc::invalid_argument);
  EXPECT_EQ(in_box(0, 0, 2, {.spatial_scale = NAN}), Errc::invalid_argument);
}

// Boxes of a box's size beside each other share an edge and no area; a share that is the threshold stays.
TEST(Boxes, ThatShareTheThresholdStay) {
  const Tensor boxes =
      Tensor::from({0.0F, 0.0F, 2.0F, 2.0F, 0.0F, 0.0F, 2.0F, 1.0F, 2.0F, 0.0F, 4.0F, 2.0F}, {3, 4});
  const Tensor scores = Tensor::from({0.9F, 0.8F, 0.7F}, {3});
  EXPECT_EQ(nms(boxes, scores, 0.5).numel(), 3);
  EXPECT_EQ(nms(boxes, scores, 0.49).numel(), 2);
  EXPECT_EQ(nms(floats({0, 4}), floats({0}), 0.5).shape(), Shape{0});
}

TEST(Boxes, OfEachImageAreThoseWithItsNumber) {
  Generator generator(2);
  const Tensor x = randn({2, 3, 6, 5}, generator);
  const Tensor a = Tensor::from({0.5F, 1.0F, 3.0F, 4.0F}, {1, 4});
  const Tensor b = Tensor::from({0.0F, 0.0F, 4.5F, 2.0F, 1.0F, 1.0F, 2.0F, 5.0F}, {2, 4});
  const Tensor listed = roi_align(x, {a, b}, {.output_size = {2, 3}});
  const Tensor alone = roi_align(x.narrow(0, 1, 1), pad(b, {1, 0}), {.output_size = {2, 3}});
  EXPECT_EQ(listed.shape(), (Shape{3, 3, 2, 3}));
  EXPECT_TRUE(all(eq(listed.narrow(0, 1, 2), alone)).item<bool>());
}

TEST(Unpooling, RefusesWhatWasNotPooled) {
  const Tensor x = floats({1, 1, 2, 2});
  const Tensor places = Tensor::zeros(DType::i64, {1, 1, 2, 2});
  EXPECT_EQ(code_of([&] { return max_unpool(x, places.narrow(3, 0, 1), {2, 2}); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              return max_unpool(x, places, {2, 2}, {.output_size = {6, 4}});
            }),
            Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              return max_unpool(x, places, {2, 2}, {.output_size = {5}});
            }),
            Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { return max_unpool(x, add(places, 16), {2, 2}); }), Errc::offset_out_of_range);
  EXPECT_EQ(code_of([&] { return max_unpool(x, places, {2, 2}, {.output_size = {5, 3}}); }), std::nullopt);
}

TEST(Convolution, RefusesWeightsWiderThanItsImages) {
  const Tensor x = floats({1, 2, 5});
  const Tensor w = floats({3, 2, 3});
  const Tensor wide = w.to(DType::f64);
  EXPECT_EQ(code_of([&] { return conv(x, wide); }), Errc::bad_dtype);
  EXPECT_EQ(code_of([&] { return conv(x.to(DType::f64), Tensor::zeros(DType::i64, w.shape())); }),
            Errc::bad_dtype);
  EXPECT_EQ(conv(x.to(DType::f64), w).dtype(), DType::f64);
  EXPECT_EQ(conv(x.to(DType::f64), wide, full({3}, 2, DType::f16)).index({0, 1, 1}).item(), 2);
}

TEST(GumbelSoftmax, DrawsByProbability) {
  Generator generator(9);
  const Tensor p = Tensor::from({0.5F, 0.3F, 0.2F}, {3});
  const Tensor drawn = gumbel_softmax(log(p).expand({20000, 3}), generator, 0.7, true);
  EXPECT_TRUE(all(eq(sum(drawn, 1), 1)).item<bool>());
  EXPECT_TRUE(allclose(mean(drawn, 0), p, 0, 0.02));
  const Tensor soft = gumbel_softmax(log(p).expand({5, 3}), generator);
  EXPECT_TRUE(allclose(sum(soft, -1), ones({5})));
}

// Their sizes, or their work, are those of values a trace does not have.
TEST(Losses, ThatReadValuesCannotBeTraced) {
  struct Nothing {
    Tensor forward(const Tensor& x) const { return x; }
  };
  const auto traced = [&](const std::vector<InputSpec>& inputs,
                          const std::function<Tensor(std::span<const Tensor>)>& work) {
    return code_of([&] {
      static_cast<void>(trace(Nothing{}, inputs,
                              [&](std::span<const Tensor> in) { return std::vector<Tensor>{work(in)}; }));
      return Tensor();
    });
  };
  EXPECT_EQ(traced({{"boxes", {"n", 4}}, {"scores", {"n"}}}, [](auto in) { return nms(in[0], in[1], 0.5); }),
            std::nullopt);
  EXPECT_EQ(traced({{"logs", {5, "n", 3}},
                    {"targets", {"n", 2}, DType::i64},
                    {"t", {"n"}, DType::i64},
                    {"l", {"n"}, DType::i64}},
                   [](auto in) { return ctc_loss(in[0], in[1], in[2], in[3]); }),
            Errc::traced_value);
  EXPECT_EQ(traced({{"x", {"n", 3}}, {"t", {"n"}, DType::i64}},
                   [](auto in) { return cross_entropy(in[0], in[1]); }),
            std::nullopt);
  EXPECT_EQ(
      traced({{"x", {"n", 3}}, {"t", {"n", 3}}}, [](auto in) { return binary_cross_entropy(in[0], in[1]); }),
      std::nullopt);
}

}  // namespace
}  // namespace ballast
