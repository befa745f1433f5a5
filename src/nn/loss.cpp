// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/loss.h"

#include <utility>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/reduce.h"
#include "nn/parameters.h"

namespace ballast::nn {

Tensor MSELoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("MSELoss", [&] { return mse_loss(x, target, reduction); });
}

Tensor L1Loss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("L1Loss", [&] { return l1_loss(x, target, reduction); });
}

Tensor SmoothL1Loss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("SmoothL1Loss", [&] { return smooth_l1_loss(x, target, beta, reduction); });
}

Tensor HuberLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("HuberLoss", [&] { return huber_loss(x, target, delta, reduction); });
}

Tensor NLLLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("NLLLoss", [&] { return nll_loss(x, target, options); });
}

Tensor CrossEntropyLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("CrossEntropyLoss", [&] { return cross_entropy(x, target, options); });
}

Tensor BCELoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("BCELoss", [&] { return binary_cross_entropy(x, target, options); });
}

Tensor BCEWithLogitsLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("BCEWithLogitsLoss", [&] { return binary_cross_entropy_with_logits(x, target, options); });
}

Tensor KLDivLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("KLDivLoss", [&] { return kl_div(x, target, reduction, log_target); });
}

Tensor PoissonNLLLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("PoissonNLLLoss", [&] { return poisson_nll_loss(x, target, options); });
}

Tensor GaussianNLLLoss::forward(const Tensor& x, const Tensor& target, const Tensor& variance) const {
  return place.run("GaussianNLLLoss", [&] { return gaussian_nll_loss(x, target, variance, options); });
}

Tensor HingeEmbeddingLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("HingeEmbeddingLoss", [&] { return hinge_embedding_loss(x, target, margin, reduction); });
}

Tensor CosineEmbeddingLoss::forward(const Tensor& a, const Tensor& b, const Tensor& target) const {
  return place.run("CosineEmbeddingLoss",
                   [&] { return cosine_embedding_loss(a, b, target, margin, reduction); });
}

Tensor MarginRankingLoss::forward(const Tensor& a, const Tensor& b, const Tensor& target) const {
  return place.run("MarginRankingLoss", [&] { return margin_ranking_loss(a, b, target, margin, reduction); });
}

Tensor SoftMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("SoftMarginLoss", [&] { return soft_margin_loss(x, target, reduction); });
}

Tensor MultiMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("MultiMarginLoss", [&] { return multi_margin_loss(x, target, options); });
}

Tensor MultiLabelMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("MultiLabelMarginLoss", [&] { return multilabel_margin_loss(x, target, reduction); });
}

Tensor MultiLabelSoftMarginLoss::forward(const Tensor& x, const Tensor& target) const {
  return place.run("MultiLabelSoftMarginLoss",
                   [&] { return multilabel_soft_margin_loss(x, target, options); });
}

Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative) const {
  return place.run("TripletMarginLoss",
                   [&] { return triplet_margin_loss(anchor, positive, negative, options); });
}

Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive,
                                              const Tensor& negative) const {
  return place.run("TripletMarginWithDistanceLoss",
                   [&] { return triplet_margin_with_distance_loss(anchor, positive, negative, options); });
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) const {
  return place.run("CTCLoss",
                   [&] { return ctc_loss(log_probs, targets, input_lengths, target_lengths, options); });
}

namespace {

constexpr const char* kAdaptive = "AdaptiveLogSoftmaxWithLoss";
constexpr double kMostFeatures =
    1e15;  // of a cluster, where a div_value below 1 makes them more: a double still counts them

// With the number of classes at their end.
std::vector<std::int64_t> checked_cutoffs(std::vector<std::int64_t> cutoffs, std::int64_t classes) {
  cutoffs.push_back(classes);
  for (std::size_t i = 0; i < cutoffs.size(); ++i)
    if (cutoffs[i] <= (i == 0 ? 0 : cutoffs[i - 1]) || cutoffs.size() < 2)
      fail(Errc::invalid_argument, kAdaptive,
           "cutoffs must grow, from 1 or more to less than the {} classes, and there must be one", classes);
  return cutoffs;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(std::int64_t in, std::int64_t classes,
                                                       std::vector<std::int64_t> cuts, double div_value,
                                                       bool head_bias)
    : in_features(in),
      n_classes(classes),
      cutoffs(checked_cutoffs(std::move(cuts), classes)),
      head(in, cutoffs[0] + static_cast<std::int64_t>(cutoffs.size()) - 1, {.bias = head_bias}) {
  double divisor = 1;
  for (std::size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    divisor *= div_value;
    const double share = static_cast<double>(in) / divisor;
    if (!(share >= 1 && share <= kMostFeatures))
      fail(Errc::invalid_argument, kAdaptive, "a div_value of {} leaves cluster {} with {} of {} features",
           div_value, i, share, in);
    const auto features = static_cast<std::int64_t>(share);
    tail.emplace_back(Linear(in, features, {.bias = false}),
                      Linear(features, cutoffs[i + 1] - cutoffs[i], {.bias = false}));
  }
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& x) const {
  return place.run(kAdaptive, [&] {
    const Tensor first = log_softmax(head.forward(x), -1);
    std::vector<Tensor> parts = {first.narrow(-1, 0, cutoffs[0])};
    for (std::size_t i = 0; i < tail.size(); ++i) {
      const Tensor cluster = first.narrow(-1, cutoffs[0] + static_cast<std::int64_t>(i), 1);
      parts.push_back(add(log_softmax(tail[i].forward(x), -1), cluster));
    }
    return concat(parts, -1);
  });
}

AdaptiveLogSoftmaxWithLoss::Result AdaptiveLogSoftmaxWithLoss::forward(const Tensor& x,
                                                                       const Tensor& target) const {
  return place.run(kAdaptive, [&]() -> Result {
    if (target.rank() + 1 != x.rank() || x.rank() > 2)
      fail(Errc::shape_mismatch, kAdaptive, "{} with targets {}: [batch, in] with [batch], or without batch",
           to_string(x.shape()), to_string(target.shape()));
    const Tensor output = gather(log_prob(x), -1, target.unsqueeze(-1)).squeeze(-1);
    return {output, neg(mean(output))};
  });
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& x) const {
  return argmax(log_prob(x), -1);
}

}  // namespace ballast::nn
