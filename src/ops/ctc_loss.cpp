// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: the sum over all ways a target can be read from its time steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "ops/loss.h"
#include "ops/parallel.h"

namespace ballast {
namespace {

constexpr const char* kCtc = "ctc_loss";
constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b, double c) {
  const double most = std::max({a, b, c});
  return most == kNever ? kNever
                        : most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// One sample: log-probabilities of [time] rows that lie `step` apart, and the target's classes.
double likelihood(const double* logs, std::int64_t step, std::int64_t time,
                  std::span<const std::int64_t> target, std::int64_t blank) {
  const std::size_t states = 2 * target.size() + 1;  // a blank before, between and after
  if (time == 0) return target.empty() ? 0 : kNever;
  const auto class_of = [&](std::size_t s) { return s % 2 == 0 ? blank : target[s / 2]; };
  std::vector<double> ways(states, kNever);
  std::vector<double> next(states, kNever);
  ways[0] = logs[blank];
  if (states > 1) ways[1] = logs[target[0]];
  for (std::int64_t t = 1; t < time; ++t) {
    const double* row = logs + t * step;
    for (std::size_t s = 0; s < states; ++s) {
      const double stay = ways[s];
      const double from_one = s > 0 ? ways[s - 1] : kNever;
      const bool skips = s > 1 && s % 2 == 1 && target[s / 2] != target[s / 2 - 1];
      next[s] = log_sum(stay, from_one, skips ? ways[s - 2] : kNever) + row[class_of(s)];
    }
    ways.swap(next);
  }
  return log_sum(ways[states - 1], states > 1 ? ways[states - 2] : kNever, kNever);
}

struct CtcBatch {
  Tensor logs;     // F64 [time, batch, classes]
  Tensor targets;  // I64
  std::vector<std::int64_t> times;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> begins;  // of each target
};

std::vector<std::int64_t> lengths_of(const Tensor& lengths, const char* what, std::int64_t batch,
                                     std::int64_t most) {
  if (lengths.numel() != batch || lengths.rank() > 1)
    fail(Errc::shape_mismatch, kCtc, "{} are {}, must be [{}]", what, ops::form(lengths), batch);
  const Tensor numbers = ops::dense_indices(kCtc, lengths).reshape({-1});
  const auto values = numbers.span<std::int64_t>();
  for (const std::int64_t one : values)
    if (one < 0 || one > most)
      fail(Errc::offset_out_of_range, kCtc, "{}: {} is not between 0 and {}", what, one, most);
  return {values.begin(), values.end()};
}

CtcBatch batch_of(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                  const Tensor& target_lengths, std::int64_t blank) {
  if (log_probs.rank() != 3 || (targets.rank() != 1 && targets.rank() != 2))
    fail(Errc::shape_mismatch, kCtc,
         "{} with targets {}: [time, batch, classes] with [batch, longest] or a list", ops::form(log_probs),
         ops::form(targets));
  const std::int64_t samples = log_probs.shape()[1];
  if (targets.rank() == 2 && targets.shape()[0] != samples)
    fail(Errc::shape_mismatch, kCtc, "targets {} for a batch of {}", ops::form(targets), samples);
  const std::int64_t classes = log_probs.shape()[2];
  if (blank < 0 || blank >= classes)
    fail(Errc::invalid_argument, kCtc, "blank is {} of {} classes", blank, classes);
  CtcBatch batch{ops::dense(log_probs.to(DType::f64)), ops::dense_indices(kCtc, targets), {}, {}, {}};
  batch.times = lengths_of(input_lengths, "input_lengths", samples, log_probs.shape()[0]);
  batch.lengths = lengths_of(target_lengths, "target_lengths", samples, targets.shape()[targets.rank() - 1]);
  std::int64_t begin = 0;
  for (const std::int64_t length : batch.lengths) {
    batch.begins.push_back(begin);
    if (targets.rank() == 1 && length > targets.numel() - begin)
      fail(Errc::offset_out_of_range, kCtc, "target_lengths add up to more than the {} targets",
           targets.numel());
    begin += targets.rank() == 2 ? targets.shape()[1] : length;
  }
  for (std::size_t i = 0; i < batch.lengths.size(); ++i)
    for (const std::int64_t one : batch.targets.span<std::int64_t>().subspan(
             static_cast<std::size_t>(batch.begins[i]), static_cast<std::size_t>(batch.lengths[i])))
      if (one < 0 || one >= classes)
        fail(Errc::offset_out_of_range, kCtc, "a target is {}, there are {} classes", one, classes);
  return batch;
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossArgs& args) {
  ops::require_reduction(kCtc, args.reduction);
  if (log_probs.rank() == 2) {
    if (targets.rank() != 1)
      fail(Errc::shape_mismatch, kCtc, "{} with targets {}: a list is wanted", ops::form(log_probs),
           ops::form(targets));
    return ctc_loss(log_probs.unsqueeze(1), targets, input_lengths.reshape({1}), target_lengths.reshape({1}),
                    args)
        .reshape({});
  }
  if (!is_floating(log_probs.dtype()))
    fail(Errc::bad_dtype, kCtc, "{}: a floating dtype is wanted", ops::form(log_probs));
  const CtcBatch batch = batch_of(log_probs, targets, input_lengths, target_lengths, args.blank);
  const auto samples = static_cast<std::int64_t>(batch.times.size());
  std::vector<double> losses(batch.times.size());
  const std::int64_t classes = log_probs.shape()[2];
  const double* all = batch.logs.numel() == 0 ? nullptr : batch.logs.span<double>().data();
  const auto listed = batch.targets.span<std::int64_t>();
  ops::parallel(samples, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const auto n = static_cast<std::size_t>(i);
      const auto target = listed.subspan(static_cast<std::size_t>(batch.begins[n]),
                                         static_cast<std::size_t>(batch.lengths[n]));
      const double loss =
          -likelihood(all + i * classes, samples * classes, batch.times[n], target, args.blank);
      losses[n] = args.zero_infinity && std::isinf(loss) ? 0 : loss;
      if (args.reduction == LossReduction::mean)
        losses[n] /= static_cast<double>(std::max<std::int64_t>(batch.lengths[n], 1));
    }
  });
  return ops::reduced_loss(kCtc, Tensor::from(std::span<const double>(losses), {samples}), args.reduction,
                           log_probs.dtype());
}

}  // namespace ballast
