// SPDX-License-Identifier: Apache-2.0
// Losses of classes: which one of several, or which ones.
#include <utility>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ops/loss.h"

namespace ballast {
namespace {

// Of each sample, [batch, size…]; 0 for one that is ignored.
struct ClassLosses {
  Tensor losses;
  Tensor weights;
};

void require_classes(const char* op, const Tensor& x, const Tensor& target) {
  Shape samples = x.shape();
  if (x.rank() > 1) samples.erase(1);
  if (x.rank() < 2 || !(samples == target.shape()))
    fail(Errc::shape_mismatch, op,
         "{} with targets {}: [batch, classes, size…] with [batch, size…], or [classes] with a number",
         ops::form(x), ops::form(target));
  if (is_floating(target.dtype()) || target.dtype() == DType::boolean)
    fail(Errc::bad_dtype, op, "targets {} are no classes: integers are wanted", ops::form(target));
}

void require_weight(const char* op, const Tensor& weight, std::int64_t classes) {
  if (weight.defined() && (weight.rank() != 1 || weight.numel() != classes || !is_floating(weight.dtype())))
    fail(Errc::shape_mismatch, op, "a weight of {} for {} classes", ops::form(weight), classes);
}

// Which samples count, and the class of each; class 0 for those that do not.
std::pair<Tensor, Tensor> counted(const Tensor& target, std::int64_t ignore_index) {
  const Tensor classes = target.to(DType::i64);
  Tensor counts = ne(classes, ignore_index);
  return {counts, where(counts, classes, 0)};
}

// x: log-probabilities in the dtype that is computed with.
ClassLosses class_losses(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight,
                         std::int64_t ignore_index) {
  require_classes(op, x, target);
  require_weight(op, weight, x.shape()[1]);
  const auto [counts, classes] = counted(target, ignore_index);
  const Tensor ignored = logical_not(counts);
  const Tensor losses = neg(gather(x, 1, classes.unsqueeze(1)).squeeze(1));
  const auto kept = [&](const Tensor& values) { return masked_fill(values, ignored, 0); };
  if (!weight.defined()) return {kept(losses), counts.to(x.dtype())};
  const Tensor factors = embedding(classes, weight.to(x.dtype()).unsqueeze(1)).squeeze(-1);
  return {kept(mul(losses, factors)), kept(factors)};
}

Tensor reduced_by_weight(const char* op, const ClassLosses& of, LossReduction reduction, DType dtype) {
  if (reduction != LossReduction::mean) return ops::reduced_loss(op, of.losses, reduction, dtype);
  return div(sum(of.losses), sum(of.weights)).to(dtype);
}

// work(x, target) with a batch of one around them when x is [classes].
template <class Work>
Tensor batched_loss(const char* op, const Tensor& x, const Tensor& target, LossReduction reduction,
                    const Work& work) {
  ops::require_computable(op, x);
  ops::require_computable(op, target);
  if (!is_floating(x.dtype()))
    fail(Errc::bad_dtype, op, "{} with targets {}: a floating dtype is wanted", ops::form(x),
         ops::form(target));
  if (x.rank() != 1) return work(x, target);
  const Tensor loss = work(x.unsqueeze(0), target.unsqueeze(0));
  return reduction == LossReduction::none ? loss.squeeze(0) : loss;
}

// [classes, 1, …], to be multiplied with [batch, classes, size…].
Tensor beside_classes(const Tensor& weight, const Tensor& x) {
  Shape shape = Dims::filled(x.rank() - 1, 1);
  shape[0] = weight.numel();
  return weight.to(x.dtype()).reshape(shape);
}

// Against a probability of each class.
Tensor soft_cross_entropy(const char* op, const Tensor& logs, const Tensor& target,
                          const CrossEntropyArgs& args, DType dtype) {
  ops::require_same_shape(op, logs, target);
  if (args.ignore_index >= 0)
    fail(Errc::invalid_argument, op, "ignore_index is {}, but targets {} are probabilities",
         args.ignore_index, ops::form(target));
  require_weight(op, args.weight, logs.shape()[1]);
  Tensor wanted = target.to(logs.dtype());
  if (args.label_smoothing > 0)
    wanted = add(mul(wanted, 1 - args.label_smoothing),
                 args.label_smoothing / static_cast<double>(logs.shape()[1]));
  Tensor each = mul(logs, wanted);
  if (args.weight.defined()) each = mul(each, beside_classes(args.weight, logs));
  return ops::reduced_loss(op, neg(sum(each, 1)), args.reduction, dtype);
}

Tensor hard_cross_entropy(const char* op, const Tensor& logs, const Tensor& target,
                          const CrossEntropyArgs& args, DType dtype) {
  ClassLosses of = class_losses(op, logs, target, args.weight, args.ignore_index);
  if (args.label_smoothing > 0) {
    const Tensor all = args.weight.defined() ? mul(logs, beside_classes(args.weight, logs)) : logs;
    const Tensor ignored = eq(target.to(DType::i64), args.ignore_index);
    const Tensor even = masked_fill(neg(sum(all, 1)), ignored, 0);
    of.losses = add(mul(of.losses, 1 - args.label_smoothing),
                    mul(even, args.label_smoothing / static_cast<double>(logs.shape()[1])));
  }
  return reduced_by_weight(op, of, args.reduction, dtype);
}

}  // namespace

Tensor nll_loss(const Tensor& x, const Tensor& target, const NllLossArgs& args) {
  constexpr const char* kOp = "nll_loss";
  return batched_loss(kOp, x, target, args.reduction, [&](const Tensor& logs, const Tensor& classes) {
    const Tensor wide = logs.to(ops::compute_dtype(logs.dtype()));
    return reduced_by_weight(kOp, class_losses(kOp, wide, classes, args.weight, args.ignore_index),
                             args.reduction, logs.dtype());
  });
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const CrossEntropyArgs& args) {
  constexpr const char* kOp = "cross_entropy";
  if (!(args.label_smoothing >= 0 && args.label_smoothing <= 1))
    fail(Errc::invalid_argument, kOp, "label_smoothing is {}, must be between 0 and 1", args.label_smoothing);
  return batched_loss(kOp, x, target, args.reduction, [&](const Tensor& v, const Tensor& t) {
    if (v.rank() < 2) fail(Errc::shape_mismatch, kOp, "{} has no classes", ops::form(x));
    const Tensor logs = log_softmax(v.to(ops::compute_dtype(v.dtype())), 1);
    return is_floating(t.dtype()) ? soft_cross_entropy(kOp, logs, t, args, v.dtype())
                                  : hard_cross_entropy(kOp, logs, t, args, v.dtype());
  });
}

Tensor multi_margin_loss(const Tensor& x, const Tensor& target, const MultiMarginArgs& args) {
  constexpr const char* kOp = "multi_margin_loss";
  if (args.p != 1 && args.p != 2) fail(Errc::invalid_argument, kOp, "p is {}, must be 1 or 2", args.p);
  return batched_loss(kOp, x, target, args.reduction, [&](const Tensor& given, const Tensor& classes) {
    require_classes(kOp, given, classes);
    const std::int64_t count = given.shape()[1];
    if (given.rank() != 2)
      fail(Errc::shape_mismatch, kOp, "{} is not [batch, classes] or [classes]", ops::form(x));
    require_weight(kOp, args.weight, count);
    const Tensor v = given.to(ops::compute_dtype(given.dtype()));
    const Tensor index = classes.to(DType::i64);
    Tensor over = clamp(add(sub(v, gather(v, 1, index.unsqueeze(1))), args.margin), 0, {});
    if (args.p == 2) over = square(over);
    const Tensor others = where(ne(one_hot(index, count), 0), 0, over);
    Tensor losses = div(sum(others, 1), count);
    if (args.weight.defined())
      losses = mul(losses, embedding(index, args.weight.to(v.dtype()).unsqueeze(1)).squeeze(-1));
    return ops::reduced_loss(kOp, losses, args.reduction, given.dtype());
  });
}

Tensor multilabel_margin_loss(const Tensor& x, const Tensor& target, LossReduction reduction) {
  constexpr const char* kOp = "multilabel_margin_loss";
  ops::require_same_shape(kOp, x, target);
  if (x.rank() < 1 || x.rank() > 2 || is_floating(target.dtype()))
    fail(Errc::shape_mismatch, kOp, "{} with targets {}: [batch, classes] or [classes], and integers",
         ops::form(x), ops::form(target));
  return batched_loss(kOp, x, target, reduction, [&](const Tensor& given, const Tensor& listed) {
    const std::int64_t count = given.shape()[1];
    const Tensor v = given.to(ops::compute_dtype(given.dtype()));
    const Tensor named = listed.to(DType::i64);
    const Tensor counts = ne(cumprod(ge(named, 0).to(DType::i64), 1), 0);  // before the first -1
    const Tensor classes = where(counts, named, 0);
    // [batch, the target's place, class].
    const Tensor is_it = logical_and(counts.unsqueeze(2), eq(classes.unsqueeze(2), arange(0, count)));
    const Tensor wanted = gather(v, 1, classes);
    const Tensor over = clamp(sub(add(v.unsqueeze(1), 1), wanted.unsqueeze(2)), 0, {});
    const Tensor asked = logical_and(counts.unsqueeze(2), logical_not(any(is_it, 1, true)));
    const Tensor losses = div(sum(where(asked, over, 0), {1, 2}), count);
    return ops::reduced_loss(kOp, losses, reduction, given.dtype());
  });
}

}  // namespace ballast
