// SPDX-License-Identifier: Apache-2.0
// Losses, boxes, pools with indices, F64, and attention that keeps keys and values.
#include "ballast/nn.h"
#include "onnx/operations.h"

namespace onnx_cases {
namespace {

using namespace ballast;

const CaseInput kClasses{{"t", {"n"}, DType::i64}, 0, 5};
const CaseInput kScores{{"x", {"n", 5}}, -2, 2};
const CaseInput kShares{{"p", {"n", 5}}, 0, 1};

// Boxes of any place and size, of corners that lie anywhere.
Tensor boxes_of(const Tensor& x) {
  const Tensor low = x.narrow(1, 0, 2);
  return concat({low, low + abs(x.narrow(1, 2, 2)) + 0.5}, 1);
}

void add_choices(std::vector<Case>& cases) {
  one(cases, "nonzero", [](auto in) {
    const Tensor above = masked_select(in[0], gt(in[0], 0.5));
    const Tensor count = arange(0, above.size(0)).to(DType::f32);
    return Tensors{nonzero(gt(in[0], 0)), above, above * count,
                   sum(masked_select(in[0], gt(in[0].narrow(2, 0, 1), 0)), 0, true)};
  });
  add_case(cases, "nms", {{{"x", {"k", 4}}, -2, 2}, {{"s", {"k"}}, 0, 1}, {{"t", {"k"}, DType::i64}, 0, 3}},
           [](auto in) {
             const Tensor boxes = boxes_of(in[0]);
             const Tensor kept = nms(boxes, in[1], 0.3);
             return Tensors{kept, index_select(boxes, 0, kept), batched_nms(boxes, in[1], in[2], 0.25)};
           },
           {{{"k", 12}}, {{"k", 40}}});
}

void add_losses(std::vector<Case>& cases) {
  add_case(
      cases, "losses_of_numbers", {kScores, {{"y", {"n", 5}}, -2, 2}},
      [](auto in) {
        return Tensors{mse_loss(in[0], in[1]),
                       l1_loss(in[0], in[1], LossReduction::sum),
                       smooth_l1_loss(in[0], in[1], 0.5, LossReduction::none),
                       huber_loss(in[0], in[1]),
                       soft_margin_loss(in[0], sign(in[1])),
                       hinge_embedding_loss(in[0], sign(in[1])),
                       poisson_nll_loss(in[0], abs(in[1]), {.full = true}),
                       gaussian_nll_loss(in[0], in[1], exp(in[1])),
                       kl_div(in[0], abs(in[1]), LossReduction::batchmean),
                       margin_ranking_loss(in[0], in[1], sign(in[0]), 0.5),
                       triplet_margin_loss(in[0], in[1], neg(in[1]), {.swap = true}),
                       multilabel_soft_margin_loss(in[0], gt(in[1], 0).to(DType::f32))};
      },
      kTwo);
  add_case(
      cases, "losses_of_classes", {kScores, kClasses},
      [](auto in) {
        const Tensor weight = linspace(0.5, 2, 5);
        return Tensors{
            cross_entropy(in[0], in[1]),
            cross_entropy(in[0], in[1], {.weight = weight, .ignore_index = 1, .label_smoothing = 0.1}),
            nll_loss(in[0], in[1], {.weight = weight, .reduction = LossReduction::none}),
            multi_margin_loss(in[0], in[1], {.p = 2, .weight = weight})};
      },
      kTwo);
  add_case(
      cases, "losses_of_shares", {kScores, kShares},
      [](auto in) {
        return Tensors{binary_cross_entropy_with_logits(in[0], in[1], {.pos_weight = linspace(0.5, 2, 5)}),
                       binary_cross_entropy(in[1], sigmoid(in[0])), cross_entropy(in[0], in[1])};
      },
      kTwo);
  add_case(
      cases, "multilabel_margin", {kScores, {{"t", {"n", 5}, DType::i64}, -1, 5}},
      [](auto in) { return Tensors{multilabel_margin_loss(in[0], in[1])}; }, kTwo);
}

Tensor some_boxes() {
  return Tensor::from(
      {0.0F, 0.5F, 1.0F, 4.0F, 5.0F, 1.0F, -1.5F, 0.0F, 3.0F, 2.5F, 0.0F, 2.0F, 2.0F, 2.5F, 2.25F}, {3, 5});
}

void add_images(std::vector<Case>& cases) {
  const CaseInput image{{"x", {2, 3, 7, 6}}, -2, 2};
  add_case(cases, "roi_align", {image},
           [](auto in) {
             return Tensors{roi_align(in[0], some_boxes(), {.output_size = {2, 3}}),
                            roi_align(in[0], some_boxes(),
                                      {.output_size = {2}, .spatial_scale = 0.5, .sampling_ratio = 2})};
           },
           {{}});
  add_case(cases, "roi_align_aligned", {image, {{"i", {"k", 1}, DType::i64}, 0, 2}, {{"b", {"k", 2}}, -1, 4}},
           [](auto in) {
             const Tensor boxes = concat({in[1].to(DType::f32), in[2], in[2] + 2.25}, 1);
             return Tensors{roi_align(in[0], boxes, {.output_size = {3, 2}, .aligned = true})};
           },
           {{{"k", 1}}, {{"k", 4}}});
  cases.back().opsets = {16, 17};
  cases.back().all_opsets = false;
  add_case(cases, "max_pool_with_indices", {{{"x", {"n", 3, "h", 7}}, -2, 2}},
           [](auto in) {
             const MaxPooled both = max_pool_with_indices(in[0], {2, 3}, {.stride = {2}, .padding = {0, 1}});
             return Tensors{both.values, both.indices};
           },
           {{{"n", 1}, {"h", 6}}, {{"n", 2}, {"h", 9}}});
  add_case(
      cases, "max_unpool", {{{"x", {"n", 3, 6, 8}}, -2, 2}},
      [](auto in) {
        const MaxPooled both = max_pool_with_indices(in[0], {2, 2});
        return Tensors{max_unpool(both.values, both.indices, {2, 2})};
      },
      kTwo);
  add_case(
      cases, "made_of_others_too", {{{"x", {"n", 3, 6, 8}}, 0.1, 2}},
      [](auto in) {
        return Tensors{lp_pool(in[0], 2, {2, 3}), rrelu(in[0] - 1.0),
                       conv_tbc(in[0].narrow(1, 0, 1).squeeze(1), linspace(-1, 1, 48).reshape({3, 8, 2}),
                                zeros({2}), 1)};
      },
      kTwo);
}

void add_wide(std::vector<Case>& cases) {
  const CaseInput image{{"x", {"n", 2, 5, 6}, DType::f64}, -2, 2};
  add_case(
      cases, "wide", {image},
      [](auto in) {
        const Tensor w = linspace(-1, 1, 18).reshape({6, 3}).to(DType::f64);
        return Tensors{softmax(in[0], 1), log_softmax(in[0], -1), linear(in[0], w, ones({3}, DType::f64)),
                       linear(in[0].reshape({-1, 6}), w), matmul(in[0].transpose(-1, -2), in[0])};
      },
      kTwo);
  add_case(
      cases, "wide_conv", {image},
      [](auto in) {
        const Tensor w = linspace(-1, 1, 54).reshape({3, 2, 3, 3}).to(DType::f64);
        return Tensors{conv(in[0], w, {}, {.padding = {1}}),
                       conv_transpose(in[0], w.transpose(0, 1), ones({3}, DType::f64))};
      },
      kTwo);
  cases.back().opsets = {};  // the checker takes it at every opset, ONNX Runtime has no such kernel
}

// A prompt, then a token at a time, as generation does it; all in one graph.
struct Decoder {
  nn::Linear query{8, 8};
  nn::Linear both{8, 16};

  [[nodiscard]] Tensor step(const Tensor& x, nn::KVCache& cache) const {
    const auto heads = [](const Tensor& y) {
      return y.reshape({y.shape()[0], y.shape()[1], 2, 4}).permute({0, 2, 1, 3});
    };
    const Tensors parts = chunk(both(x), 2, -1);
    const nn::KVCache::Seen seen = cache.append(heads(parts[0]), heads(parts[1]));
    const Tensor mixed = scaled_dot_product_attention(heads(query(x)), seen.keys, seen.values);
    return mixed.permute({0, 2, 1, 3}).reshape(x.shape());
  }

  [[nodiscard]] Tensor forward(const Tensor& prompt, const Tensor& more) const {
    nn::KVCache cache;
    Tensors outputs = {step(prompt, cache)};
    for (const Tensor& token : unbind(more, 1)) outputs.push_back(step(token.unsqueeze(1), cache));
    cache.truncate(prompt.shape()[1]);
    outputs.push_back(step(more.narrow(1, 1, 1), cache));
    return concat(outputs, 1);
  }
};

}  // namespace

void add_loss_cases(std::vector<Case>& cases) {
  add_choices(cases);
  add_losses(cases);
  add_images(cases);
  add_wide(cases);
  auto decoder = std::make_shared<Decoder>();
  init(*decoder, 3);
  cases.push_back(model_case("kv_cache", decoder,
                             {{{"prompt", {"n", "length", 8}}, -2, 2}, {{"more", {"n", 3, 8}}, -2, 2}},
                             {{{"n", 1}, {"length", 4}}, {{"n", 2}, {"length", 7}}}));
}

}  // namespace onnx_cases
