// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

double real(const Json& a, const char* name) {
  return number_of(a[name]);
}

// What a case asks for; `divisor` of a mean.
Arrays reduced(const Array& losses, const Json& a, double divisor) {
  if (a["reduction"] == "none") return {losses};
  double sum = 0;
  for (const double loss : losses.values) sum += loss;
  Array one{Place{}};
  one.values[0] = a["reduction"] == "mean" || a["reduction"] == "batchmean" ? sum / divisor : sum;
  return {one};
}

Arrays reduced(const Array& losses, const Json& a) {
  return reduced(losses, a, static_cast<double>(losses.values.size()));
}

template <class F>
Reference each_pair(F function) {
  return [function](const Arrays& in, const Json& a) -> Arrays {
    const Array losses =
        filled(in[0].shape, [&](const Place& at) { return function(in[0](at), in[1](at), a); });
    if (a["reduction"] == "batchmean") return reduced(losses, a, static_cast<double>(in[0].shape[0]));
    return reduced(losses, a);
  };
}

double spread_or(const Array& x, const Place& at, double otherwise) {
  return x.values.empty() ? otherwise : x.spread(at);
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

double poisson(double x, double t, const Json& a) {
  const bool logs = a["log_input"].get<bool>();
  const double loss = logs ? std::exp(x) - t * x : x - t * std::log(x + 1e-8);
  if (!a["full"].get<bool>() || t <= 1) return loss;
  return loss + t * std::log(t) - t + 0.5 * std::log(2 * std::numbers::pi * t);
}

Arrays binary(const Arrays& in, const Json& a, bool logits) {
  return reduced(
      filled(in[0].shape,
             [&](const Place& at) {
               const double x = in[0](at);
               const double t = in[1](at);
               const double weight = spread_or(in[2], at, 1);
               if (!logits)
                 return -weight *
                        (t * std::max(std::log(x), -100.0) + (1 - t) * std::max(std::log1p(-x), -100.0));
               return weight * (t * spread_or(in[3], at, 1) * softplus(-x) + (1 - t) * softplus(x));
             }),
      a);
}

Arrays gaussian(const Arrays& in, const Json& a) {
  Array variance = in[2];
  if (variance.rank() < in[0].rank()) variance.shape.push_back(1);
  const double constant = a["full"].get<bool>() ? 0.5 * std::log(2 * std::numbers::pi) : 0;
  return reduced(filled(in[0].shape,
                        [&](const Place& at) {
                          const double v = std::max(variance.spread(at), 1e-6);
                          const double d = in[0](at) - in[1](at);
                          return 0.5 * (std::log(v) + d * d / v) + constant;
                        }),
                 a);
}

References of_numbers() {
  return {{"mse_loss", each_pair([](double x, double t, const Json&) { return (x - t) * (x - t); })},
          {"l1_loss", each_pair([](double x, double t, const Json&) { return std::abs(x - t); })},
          {"smooth_l1_loss", each_pair([](double x, double t, const Json& a) {
             const double d = std::abs(x - t);
             const double beta = real(a, "beta");
             return d < beta ? d * d / 2 / beta : d - beta / 2;
           })},
          {"huber_loss", each_pair([](double x, double t, const Json& a) {
             const double d = std::abs(x - t);
             const double delta = real(a, "delta");
             return d <= delta ? d * d / 2 : delta * (d - delta / 2);
           })},
          {"soft_margin_loss", each_pair([](double x, double t, const Json&) { return softplus(-t * x); })},
          {"hinge_embedding_loss", each_pair([](double x, double t, const Json& a) {
             return t == 1 ? x : std::max(0.0, real(a, "margin") - x);
           })},
          {"poisson_nll_loss", each_pair(poisson)},
          {"kl_div", each_pair([](double x, double t, const Json& a) {
             if (a["log_target"].get<bool>()) return std::exp(t) * (t - x);
             return t == 0 ? 0 : t * (std::log(t) - x);
           })},
          {"binary_cross_entropy", [](const Arrays& in, const Json& a) { return binary(in, a, false); }},
          {"binary_cross_entropy_with_logits",
           [](const Arrays& in, const Json& a) { return binary(in, a, true); }},
          {"gaussian_nll_loss", gaussian}};
}

// The place of sample `at` and class c in x.
Place with_class(const Place& at, std::int64_t c) {
  Place place = at;
  place.insert(place.begin() + (at.empty() ? 0 : 1), c);
  return place;
}

std::int64_t class_count(const Array& x) {
  return x.shape[x.rank() == 1 ? 0 : 1];
}

double log_of_sum(const Array& x, const Place& at) {
  double most = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < class_count(x); ++c) most = std::max(most, x(with_class(at, c)));
  double sum = 0;
  for (std::int64_t c = 0; c < class_count(x); ++c) sum += std::exp(x(with_class(at, c)) - most);
  return most + std::log(sum);
}

// Cross entropy with `logs` taken of x, or x taken for them.
Arrays entropy(const Arrays& in, const Json& a, bool takes_logs) {
  const Array& x = in[0];
  const double smooth = a.contains("label_smoothing") ? real(a, "label_smoothing") : 0;
  const auto count = static_cast<double>(class_count(x));
  const bool soft = in[1].shape == x.shape;
  Place shape = x.shape;
  shape.erase(shape.begin() + (x.rank() == 1 ? 0 : 1));
  double divisor = 0;
  const Array losses = filled(shape, [&](const Place& at) {
    const double whole = takes_logs ? log_of_sum(x, at) : 0;
    const auto target = soft ? -1 : static_cast<std::int64_t>(in[1](at));
    if (!soft && target == a["ignore_index"].get<std::int64_t>()) return 0.0;
    divisor += soft ? 1 : value_or(in[2], static_cast<std::size_t>(target), 1);
    double loss = 0;
    for (std::int64_t c = 0; c < class_count(x); ++c) {
      const double wanted = soft ? in[1](with_class(at, c)) : (c == target ? 1 : 0);
      loss -= (x(with_class(at, c)) - whole) * value_or(in[2], static_cast<std::size_t>(c), 1) *
              (wanted * (1 - smooth) + smooth / count);
    }
    return loss;
  });
  return reduced(losses, a, divisor);
}

// Of rows [batch, classes] or one alone: loss(row) for each.
template <class Loss>
Arrays by_row(const Arrays& in, const Json& a, Loss loss) {
  const bool alone = in[0].rank() == 1;
  Array losses(alone ? Place{} : Place{in[0].shape[0]});
  const auto count = static_cast<std::size_t>(in[0].shape.back());
  for (std::size_t row = 0; row < losses.values.size(); ++row)
    losses.values[row] = loss(&in[0].values[row * count], row, count);
  return reduced(losses, a);
}

Arrays multi_margin(const Arrays& in, const Json& a) {
  return by_row(in, a, [&](const double* x, std::size_t row, std::size_t count) {
    const auto target = static_cast<std::size_t>(in[1].values[row]);
    double loss = 0;
    for (std::size_t c = 0; c < count; ++c)
      if (c != target) loss += std::pow(std::max(0.0, real(a, "margin") - x[target] + x[c]), real(a, "p"));
    return loss / static_cast<double>(count) * value_or(in[2], target, 1);
  });
}

Arrays multilabel_margin(const Arrays& in, const Json& a) {
  return by_row(in, a, [&](const double* x, std::size_t row, std::size_t count) {
    std::set<std::size_t> wanted;
    for (std::size_t k = 0; k < count && in[1].values[row * count + k] >= 0; ++k)
      wanted.insert(static_cast<std::size_t>(in[1].values[row * count + k]));
    double loss = 0;
    for (const std::size_t t : wanted)
      for (std::size_t c = 0; c < count; ++c)
        if (!wanted.contains(c)) loss += std::max(0.0, 1 - x[t] + x[c]);
    return loss / static_cast<double>(count);
  });
}

Arrays multilabel_soft_margin(const Arrays& in, const Json& a) {
  Place shape = in[0].shape;
  shape.pop_back();
  return reduced(filled(shape,
                        [&](const Place& at) {
                          double loss = 0;
                          Place place = at;
                          place.push_back(0);
                          for (; place.back() < in[0].shape.back(); ++place.back()) {
                            const double x = in[0](place);
                            const double t = in[1](place);
                            loss += spread_or(in[2], place, 1) * (t * softplus(-x) + (1 - t) * softplus(x));
                          }
                          return loss / static_cast<double>(in[0].shape.back());
                        }),
                 a);
}

// Every way to read the target, one after another.
double all_ways(const Array& logs, std::size_t sample, std::int64_t time, std::int64_t at,
                std::int64_t before, const Place& target, std::size_t read, std::int64_t blank) {
  if (at == time) return read == target.size() ? 1 : 0;
  double sum = 0;
  for (std::int64_t c = 0; c < logs.shape[2]; ++c) {
    std::size_t next = read;
    if (c != blank && c != before) {
      if (read == target.size() || target[read] != c) continue;
      ++next;
    }
    sum += std::exp(logs({at, static_cast<std::int64_t>(sample), c})) *
           all_ways(logs, sample, time, at + 1, c, target, next, blank);
  }
  return sum;
}

Arrays ctc(const Arrays& in, const Json& a) {
  Array logs = in[0];
  if (logs.rank() == 2) logs.shape.insert(logs.shape.begin() + 1, 1);
  Array losses(in[0].rank() == 2 ? Place{} : Place{logs.shape[1]});
  std::size_t begin = 0;
  for (std::size_t i = 0; i < losses.values.size(); ++i) {
    const auto length = static_cast<std::size_t>(in[3].values[i]);
    if (in[1].rank() == 2) begin = i * static_cast<std::size_t>(in[1].shape[1]);
    Place target;
    for (std::size_t k = 0; k < length; ++k)
      target.push_back(static_cast<std::int64_t>(in[1].values[begin + k]));
    begin += length;
    const double ways =
        all_ways(logs, i, static_cast<std::int64_t>(in[2].values[i]), 0, -1, target, 0, integer(a, "blank"));
    double loss = ways == 0 ? (a["zero_infinity"].get<bool>() ? 0 : INFINITY) : -std::log(ways);
    if (a["reduction"] == "mean") loss /= static_cast<double>(std::max<std::size_t>(length, 1));
    losses.values[i] = loss;
  }
  return reduced(losses, a);
}

double distance(const Array& a, const Array& b, std::int64_t row, double p) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.shape[1]; ++k)
    sum += std::pow(std::abs(a({row, k}) - b({row, k}) + 1e-6), p);
  return std::pow(sum, 1 / p);
}

double farthest(const Array& a, const Array& b, std::int64_t row) {
  double most = 0;
  for (std::int64_t k = 0; k < a.shape[1]; ++k) most = std::max(most, std::abs(a({row, k}) - b({row, k})));
  return most;
}

Arrays triplet(const Arrays& in, const Json& a) {
  const bool own = a.contains("own") && a["own"].get<bool>();
  const double p = a.contains("p") ? real(a, "p") : 2;
  return reduced(filled({in[0].shape[0]},
                        [&](const Place& at) {
                          const auto between = [&](std::size_t i, std::size_t j) {
                            return own ? farthest(in[i], in[j], at[0]) : distance(in[i], in[j], at[0], p);
                          };
                          const double swapped = a["swap"].get<bool>() ? between(1, 2) : INFINITY;
                          return std::max(
                              0.0, real(a, "margin") + between(0, 1) - std::min(between(0, 2), swapped));
                        }),
                 a);
}

Arrays cosine_embedding(const Arrays& in, const Json& a) {
  return by_row(in, a, [&](const double* x, std::size_t row, std::size_t count) {
    const double* y = &in[1].values[row * count];
    double xy = 0;
    double xx = 1e-12;
    double yy = 1e-12;
    for (std::size_t k = 0; k < count; ++k) {
      xy += x[k] * y[k];
      xx += x[k] * x[k];
      yy += y[k] * y[k];
    }
    const double cosine = xy / std::sqrt(xx * yy);
    return in[2].values[row] == 1 ? 1 - cosine : std::max(0.0, cosine - real(a, "margin"));
  });
}

}  // namespace

References reference_losses() {
  References all = of_numbers();
  all.merge(References{
      {"nll_loss", [](const Arrays& in, const Json& a) { return entropy(in, a, false); }},
      {"cross_entropy", [](const Arrays& in, const Json& a) { return entropy(in, a, true); }},
      {"multi_margin_loss", multi_margin},
      {"multilabel_margin_loss", multilabel_margin},
      {"multilabel_soft_margin_loss", multilabel_soft_margin},
      {"ctc_loss", ctc},
      {"cosine_embedding_loss", cosine_embedding},
      {"margin_ranking_loss",
       [](const Arrays& in, const Json& a) {
         return reduced(filled(in[0].shape,
                               [&](const Place& at) {
                                 return std::max(0.0,
                                                 -in[2](at) * (in[0](at) - in[1](at)) + real(a, "margin"));
                               }),
                        a);
       }},
      {"triplet_margin_loss", triplet},
      {"triplet_margin_with_distance_loss", triplet}});
  return all;
}

}  // namespace ballast::ops_tests
