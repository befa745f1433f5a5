// SPDX-License-Identifier: Apache-2.0
// Losses as layers, with PyTorch's names and options, for evaluation; what they compute is in
// detail/ops/loss.h. A weight is an option and stays what it was made with: load() and save() do not know it.
//
// Gives: forward() one number, or with LossReduction::none the loss of each element or sample. Throws:
// forward() what the function of its name throws (detail/ops/loss.h): Errc::shape_mismatch, bad_dtype,
// offset_out_of_range, invalid_argument; AdaptiveLogSoftmaxWithLoss's
// constructor Errc::invalid_argument for cutoffs that do not grow, and a `div_value` that leaves a cluster no
// features, its forward() shape_mismatch for targets
// of another rank.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/detail/nn/linear.h"
#include "ballast/detail/nn/place.h"
#include "ballast/detail/nn/sequential.h"
#include "ballast/detail/ops/loss.h"
#include "ballast/module.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

struct MSELoss {
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct L1Loss {
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct SmoothL1Loss {
  double beta = 1;
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct HuberLoss {
  double delta = 1;
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct NLLLoss {
  NllLossArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

using NLLLoss2d = NLLLoss;  ///< as in PyTorch

struct CrossEntropyLoss {
  CrossEntropyArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct BCELoss {
  BceArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct BCEWithLogitsLoss {
  BceWithLogitsArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct KLDivLoss {
  LossReduction reduction = LossReduction::mean;
  bool log_target = false;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct PoissonNLLLoss {
  PoissonNllArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct GaussianNLLLoss {
  GaussianNllArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target, const Tensor& variance) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct HingeEmbeddingLoss {
  double margin = 1;
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct CosineEmbeddingLoss {
  double margin = 0;
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& a, const Tensor& b, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct MarginRankingLoss {
  double margin = 0;
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& a, const Tensor& b, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct SoftMarginLoss {
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct MultiMarginLoss {
  MultiMarginArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct MultiLabelMarginLoss {
  LossReduction reduction = LossReduction::mean;
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct MultiLabelSoftMarginLoss {
  BceArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& target) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct TripletMarginLoss {
  TripletMarginArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct TripletMarginWithDistanceLoss {
  TripletDistanceArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

struct CTCLoss {
  CtcLossArgs options = {};
  Place place = {};

  [[nodiscard]] Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                               const Tensor& target_lengths) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS();
};

/// A softmax over many classes, the frequent ones first: those before the first cutoff are told apart by
/// `head`, the others by the cluster they belong to.
struct AdaptiveLogSoftmaxWithLoss {
  std::int64_t in_features;
  std::int64_t n_classes;
  std::vector<std::int64_t> cutoffs;  ///< where clusters begin; n_classes at the end
  Linear head;
  std::vector<Sequential<Linear, Linear>> tail;
  Place place;

  /// The features of each cluster are by `div_value` fewer than those of the one before.
  AdaptiveLogSoftmaxWithLoss(std::int64_t in, std::int64_t classes, std::vector<std::int64_t> cuts,
                             double div_value = 4, bool head_bias = false);

  /// What forward() gives.
  struct Result {
    Tensor output;  ///< [batch]: the log-probability of each target
    Tensor loss;    ///< their mean, negative
  };

  /// x [batch, in] with target I64 [batch], or without batch.
  [[nodiscard]] Result forward(const Tensor& x, const Tensor& target) const;
  /// [batch, classes].
  [[nodiscard]] Tensor log_prob(const Tensor& x) const;
  /// I64 [batch]: the likeliest class.
  [[nodiscard]] Tensor predict(const Tensor& x) const;

  [[nodiscard]] auto operator()(const auto&... args) const { return forward(args...); }

  BALLAST_FIELDS(head, tail);
};

}  // namespace ballast::nn

#pragma GCC visibility pop
