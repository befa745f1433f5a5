// SPDX-License-Identifier: Apache-2.0
// How far answers are from what was wanted, for evaluation: the losses of torch.nn.functional, with its names
// and defaults. Made of other operations, so they are traced and exported as those; ctc_loss alone reads its
// operands (Errc::traced_value in a trace). F16 and BF16 are computed in F32 and rounded once.
//
// Takes x (the model's answer) and what was wanted. Gives: one number, or with LossReduction::none the loss
// of each element or sample; in x's dtype. Throws: Errc::shape_mismatch for x, targets and weights that do
// not fit each other; bad_dtype unless x is floating, and classes integers; offset_out_of_range for a class,
// length or target there is not; invalid_argument for numbers out of their range, probabilities and variances
// that are none (values are not looked at in a trace), LossReduction::batchmean of any but kl_div(), and an
// undefined operand.
#pragma once

#include <cstdint>

#include "ballast/detail/function.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What becomes of the losses of all elements (or samples).
enum class LossReduction : std::uint8_t {
  mean,
  sum,
  none,
  batchmean,  ///< of kl_div: the sum divided by the size of dimension 0
};

/// (x - target)².
[[nodiscard]] Tensor mse_loss(const Tensor& x, const Tensor& target,
                              LossReduction reduction = LossReduction::mean);
/// |x - target|.
[[nodiscard]] Tensor l1_loss(const Tensor& x, const Tensor& target,
                             LossReduction reduction = LossReduction::mean);
/// Half the square divided by beta where the distance is below beta, else the distance less beta / 2.
[[nodiscard]] Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1,
                                    LossReduction reduction = LossReduction::mean);
/// Half the square up to a distance of delta, beyond it a line.
[[nodiscard]] Tensor huber_loss(const Tensor& x, const Tensor& target, double delta = 1,
                                LossReduction reduction = LossReduction::mean);

struct NllLossArgs {
  Tensor weight = {};  ///< [classes]: of each class; a mean is divided by the weights it counted
  std::int64_t ignore_index = -100;
  LossReduction reduction = LossReduction::mean;
};

/// x: log-probabilities [batch, classes, size…] or [classes]. target: I64 [batch, size…] or a number. A class
/// there is not is refused (Errc::offset_out_of_range).
[[nodiscard]] Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossArgs& args = {});

struct CrossEntropyArgs {
  Tensor weight = {};
  std::int64_t ignore_index = -100;  ///< of targets that are classes
  LossReduction reduction = LossReduction::mean;
  double label_smoothing = 0;
};

/// x: any numbers, of which log_softmax is taken. target: classes as in nll_loss, or probabilities of x's
/// shape.
[[nodiscard]] Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyArgs& args = {});

struct BceArgs {
  Tensor weight = {};  ///< spread over x
  LossReduction reduction = LossReduction::mean;
};

/// x: probabilities; what is none is refused (in a trace it becomes NaN).
[[nodiscard]] Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const BceArgs& args = {});

struct BceWithLogitsArgs {
  Tensor weight = {};
  Tensor pos_weight = {};  ///< of targets that are 1, spread over x
  LossReduction reduction = LossReduction::mean;
};

[[nodiscard]] Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                                      const BceWithLogitsArgs& args = {});

/// x: log-probabilities; target: probabilities, or their logarithms with `log_target`.
[[nodiscard]] Tensor kl_div(const Tensor& x, const Tensor& target,
                            LossReduction reduction = LossReduction::mean, bool log_target = false);

struct PoissonNllArgs {
  bool log_input = true;
  bool full = false;  ///< with Stirling's approximation of the constant
  double eps = 1e-8;
  LossReduction reduction = LossReduction::mean;
};

[[nodiscard]] Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllArgs& args = {});

struct GaussianNllArgs {
  bool full = false;
  double eps = 1e-6;  ///< variances below are taken for it
  LossReduction reduction = LossReduction::mean;
};

/// variance: of x's shape, without its last dimension, or with a last one of 1. A negative one is refused.
[[nodiscard]] Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& variance,
                                       const GaussianNllArgs& args = {});

/// target: 1 or -1.
[[nodiscard]] Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1,
                                          LossReduction reduction = LossReduction::mean);
/// a, b [batch, features] with target [batch], or without batch; target: 1 (alike) or -1.
[[nodiscard]] Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                           double margin = 0, LossReduction reduction = LossReduction::mean);
/// target: 1 where a should be larger than b, else -1.
[[nodiscard]] Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                         double margin = 0, LossReduction reduction = LossReduction::mean);
/// log(1 + exp(-target x)).
[[nodiscard]] Tensor soft_margin_loss(const Tensor& x, const Tensor& target,
                                      LossReduction reduction = LossReduction::mean);

struct MultiMarginArgs {
  std::int64_t p = 1;  ///< 1 or 2
  double margin = 1;
  Tensor weight = {};  ///< [classes]
  LossReduction reduction = LossReduction::mean;
};

/// x [batch, classes] with target I64 [batch], or without batch.
[[nodiscard]] Tensor multi_margin_loss(const Tensor& x, const Tensor& target,
                                       const MultiMarginArgs& args = {});
/// x and target [batch, classes], or without batch; target: I64, the classes of each row before its first -1.
[[nodiscard]] Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target,
                                            LossReduction reduction = LossReduction::mean);
/// target: 1 or 0 for each class, the last dimension.
[[nodiscard]] Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target,
                                                 const BceArgs& args = {});

struct TripletMarginArgs {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;  ///< the negative may be nearer to the positive than to the anchor
  LossReduction reduction = LossReduction::mean;
};

[[nodiscard]] Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginArgs& args = {});

struct TripletDistanceArgs {
  Function<Tensor(const Tensor&, const Tensor&)> distance = {};  ///< pairwise_distance when empty
  double margin = 1;
  bool swap = false;
  LossReduction reduction = LossReduction::mean;
};

[[nodiscard]] Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                                       const Tensor& negative,
                                                       const TripletDistanceArgs& args = {});

struct CtcLossArgs {
  std::int64_t blank = 0;
  bool zero_infinity = false;                     ///< 0 for targets that do not fit into their time
  LossReduction reduction = LossReduction::mean;  ///< mean: each is divided by its target's length before
};

/// log_probs [time, batch, classes] with targets I64 [batch, longest] or one after another in a list, and the
/// lengths of both, I64 [batch]; or [time, classes], a list, and two numbers.
[[nodiscard]] Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                              const Tensor& target_lengths, const CtcLossArgs& args = {});

}  // namespace ballast

#pragma GCC visibility pop
