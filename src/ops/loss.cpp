// SPDX-License-Identifier: Apache-2.0
// Losses of numbers, element by element and pair by pair.
#include "ops/loss.h"

#include <cmath>
#include <numbers>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/norm.h"
#include "tensor/trace.h"

namespace ballast {

namespace ops {

void require_reduction(const char* op, LossReduction reduction) {
  if (reduction == LossReduction::batchmean)
    fail(Errc::invalid_argument, op, "batchmean is a reduction of kl_div; this one has mean, sum and none");
}

Tensor reduced_loss(const char* op, const Tensor& losses, LossReduction reduction, DType dtype) {
  require_reduction(op, reduction);
  if (reduction == LossReduction::none) return losses.to(dtype);
  return (reduction == LossReduction::sum ? sum(losses) : mean(losses)).to(dtype);
}

DType loss_dtype(const char* op, const Tensor& x, const Tensor& target) {
  const DType dtype = promoted(op, x, target);
  if (!is_floating(dtype))
    fail(Errc::bad_dtype, op, "{} and {}: a floating dtype is wanted", form(x), form(target));
  return dtype;
}

void require_same_shape(const char* op, const Tensor& x, const Tensor& target) {
  if (!(x.shape() == target.shape()))
    fail(Errc::shape_mismatch, op, "{} and {} are not of one shape", form(x), form(target));
}

}  // namespace ops

namespace {

// work(x, target) in the dtype that is computed with, reduced.
template <class Work>
Tensor loss_of(const char* op, const Tensor& x, const Tensor& target, LossReduction reduction,
               const Work& work) {
  const DType dtype = ops::loss_dtype(op, x, target);
  const DType wide = ops::compute_dtype(dtype);
  return ops::reduced_loss(op, work(x.to(wide), target.to(wide)), reduction, dtype);
}

Tensor at_least(const Tensor& x, double low) {
  return clamp(x, low, {});
}

Tensor weighted(const Tensor& losses, const Tensor& weight) {
  return weight.defined() ? mul(losses, weight.to(losses.dtype())) : losses;
}

// A trace has no values to look at.
void require_all(const char* op, const Tensor& holds, const char* otherwise) {
  if (!tracing::on() && !all(holds).item<bool>()) fail(Errc::invalid_argument, op, "{}", otherwise);
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, LossReduction reduction) {
  return loss_of("mse_loss", x, target, reduction,
                 [](const Tensor& a, const Tensor& b) { return square(sub(a, b)); });
}

Tensor l1_loss(const Tensor& x, const Tensor& target, LossReduction reduction) {
  return loss_of("l1_loss", x, target, reduction,
                 [](const Tensor& a, const Tensor& b) { return abs(sub(a, b)); });
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, LossReduction reduction) {
  if (!(beta >= 0)) fail(Errc::invalid_argument, "smooth_l1_loss", "beta is {}", beta);
  if (beta == 0) return l1_loss(x, target, reduction);
  return loss_of("smooth_l1_loss", x, target, reduction, [&](const Tensor& a, const Tensor& b) {
    const Tensor distance = abs(sub(a, b));
    return where(lt(distance, beta), div(mul(square(distance), 0.5), beta), sub(distance, 0.5 * beta));
  });
}

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta, LossReduction reduction) {
  if (!(delta > 0)) fail(Errc::invalid_argument, "huber_loss", "delta is {}, must be above 0", delta);
  return loss_of("huber_loss", x, target, reduction, [&](const Tensor& a, const Tensor& b) {
    const Tensor distance = abs(sub(a, b));
    return where(le(distance, delta), mul(square(distance), 0.5), mul(sub(distance, 0.5 * delta), delta));
  });
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const BceArgs& args) {
  constexpr const char* kOp = "binary_cross_entropy";
  ops::require_same_shape(kOp, x, target);
  require_all(kOp, logical_and(ge(x, 0), le(x, 1)),
              "x has values outside [0, 1]: give it probabilities, or use binary_cross_entropy_with_logits");
  return loss_of(kOp, x, target, args.reduction, [&](const Tensor& p, const Tensor& t) {
    constexpr double kLowest = -100;  // PyTorch's stand-in for the logarithm of 0
    const Tensor yes = mul(t, at_least(log(p), kLowest));
    const Tensor no = mul(sub(1, t), at_least(log1p(neg(p)), kLowest));
    return weighted(neg(add(yes, no)), args.weight);
  });
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        const BceWithLogitsArgs& args) {
  constexpr const char* kOp = "binary_cross_entropy_with_logits";
  ops::require_same_shape(kOp, x, target);
  return loss_of(kOp, x, target, args.reduction, [&](const Tensor& v, const Tensor& t) {
    Tensor doubt = add(log1p(exp(neg(abs(v)))), at_least(neg(v), 0));  // -log(sigmoid)
    if (args.pos_weight.defined()) doubt = mul(doubt, add(mul(sub(args.pos_weight.to(v.dtype()), 1), t), 1));
    return weighted(add(mul(sub(1, t), v), doubt), args.weight);
  });
}

Tensor kl_div(const Tensor& x, const Tensor& target, LossReduction reduction, bool log_target) {
  constexpr const char* kOp = "kl_div";
  const auto work = [&](const Tensor& v, const Tensor& t) {
    if (log_target) return mul(exp(t), sub(t, v));
    return sub(where(eq(t, 0), 0, mul(t, log(t))), mul(t, v));
  };
  if (reduction != LossReduction::batchmean) return loss_of(kOp, x, target, reduction, work);
  if (x.rank() == 0) fail(Errc::shape_mismatch, kOp, "{} has no batch to take a mean of", ops::form(x));
  const DType dtype = ops::loss_dtype(kOp, x, target);
  const DType wide = ops::compute_dtype(dtype);
  return div(sum(work(x.to(wide), target.to(wide))), x.shape()[0]).to(dtype);
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllArgs& args) {
  return loss_of("poisson_nll_loss", x, target, args.reduction, [&](const Tensor& v, const Tensor& t) {
    Tensor loss = args.log_input ? sub(exp(v), mul(t, v)) : sub(v, mul(t, log(add(v, args.eps))));
    if (!args.full) return loss;
    const Tensor constant = add(sub(mul(t, log(t)), t), mul(log(mul(t, 2 * std::numbers::pi)), 0.5));
    return add(loss, where(gt(t, 1), constant, 0));
  });
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& variance,
                         const GaussianNllArgs& args) {
  constexpr const char* kOp = "gaussian_nll_loss";
  const std::size_t rank = x.rank();
  const bool shorter = variance.rank() + 1 == rank;
  const Tensor spread = shorter ? variance.unsqueeze(-1) : variance;
  Shape one = x.shape();
  if (rank > 0) one[rank - 1] = 1;
  if (!(spread.shape() == one) && (shorter || !(spread.shape() == x.shape())))
    fail(Errc::shape_mismatch, kOp, "a variance of {} for {}", ops::form(variance), ops::form(x));
  require_all(kOp, ge(variance, 0), "a variance is negative or NaN");
  return loss_of(kOp, x, target, args.reduction, [&](const Tensor& v, const Tensor& t) {
    const Tensor bounded = at_least(spread.to(v.dtype()), args.eps);
    const Tensor loss = mul(add(log(bounded), div(square(sub(v, t)), bounded)), 0.5);
    return args.full ? add(loss, 0.5 * std::log(2 * std::numbers::pi)) : loss;
  });
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin, LossReduction reduction) {
  return loss_of("hinge_embedding_loss", x, target, reduction, [&](const Tensor& v, const Tensor& t) {
    return add(where(ne(t, 1), at_least(sub(margin, v), 0), 0), where(ne(t, -1), v, 0));
  });
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                             LossReduction reduction) {
  constexpr const char* kOp = "cosine_embedding_loss";
  const auto dim = static_cast<std::int64_t>(target.rank());
  if (dim > 1 || a.rank() != target.rank() + 1 || b.rank() != a.rank())
    fail(Errc::shape_mismatch, kOp,
         "{} and {} with {}: [batch, features] twice with [batch], or without batch", ops::form(a),
         ops::form(b), ops::form(target));
  return loss_of(kOp, a, b, reduction, [&](const Tensor& x, const Tensor& y) {
    constexpr double kEps = 1e-12;
    const auto length = [&](const Tensor& v) { return add(sum(mul(v, v), dim), kEps); };
    const Tensor cosine = div(sum(mul(x, y), dim), sqrt(mul(length(x), length(y))));
    return add(where(eq(target, 1), sub(1, cosine), 0),
               where(eq(target, -1), at_least(sub(cosine, margin), 0), 0));
  });
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                           LossReduction reduction) {
  return loss_of("margin_ranking_loss", a, b, reduction, [&](const Tensor& x, const Tensor& y) {
    return at_least(add(mul(neg(target.to(x.dtype())), sub(x, y)), margin), 0);
  });
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, LossReduction reduction) {
  return loss_of("soft_margin_loss", x, target, reduction,
                 [](const Tensor& v, const Tensor& t) { return log1p(exp(mul(neg(v), t))); });
}

Tensor multilabel_soft_margin_loss(const Tensor& x, const Tensor& target, const BceArgs& args) {
  constexpr const char* kOp = "multilabel_soft_margin_loss";
  if (x.rank() == 0) fail(Errc::shape_mismatch, kOp, "{} has no classes", ops::form(x));
  return loss_of(kOp, x, target, args.reduction, [&](const Tensor& v, const Tensor& t) {
    const Tensor each = neg(add(mul(t, log_sigmoid(v)), mul(sub(1, t), log_sigmoid(neg(v)))));
    return mean(weighted(each, args.weight), -1);
  });
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletDistanceArgs& args) {
  constexpr const char* kOp = "triplet_margin_with_distance_loss";
  const auto between = [&](const Tensor& a, const Tensor& b) {
    return args.distance ? args.distance(a, b) : pairwise_distance(a, b);
  };
  const DType dtype = ops::loss_dtype(kOp, anchor, positive);
  const DType wide = ops::compute_dtype(dtype);
  const Tensor a = anchor.to(wide);
  const Tensor p = positive.to(wide);
  const Tensor n = negative.to(wide);
  Tensor far = between(a, n);
  if (args.swap) far = minimum(far, between(p, n));
  const Tensor losses = at_least(sub(add(between(a, p), args.margin), far), 0);
  return ops::reduced_loss(kOp, losses, args.reduction, dtype);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginArgs& args) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b, args.p, args.eps);
  };
  return triplet_margin_with_distance_loss(
      anchor, positive, negative,
      {.distance = distance, .margin = args.margin, .swap = args.swap, .reduction = args.reduction});
}

}  // namespace ballast
