// SPDX-License-Identifier: Apache-2.0
#include "graph/solve.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace ballast::graph {
namespace {

using Found = std::optional<SizeExpr>;

constexpr std::int64_t kMostDivisor = 256;
constexpr std::size_t kMostInPairs = 64;    // sizes that are tried two by two
constexpr std::size_t kMostInTriples = 24;  // and three by three

// Several expressions are right in every trace and differ elsewhere: thrown and caught in this file alone.
struct Undetermined {};

bool constant(const Seen& seen) {
  return std::all_of(seen.begin(), seen.end(), [&](std::int64_t one) { return one == seen[0]; });
}

// Numbers that differ: an expression with two free numbers needs a third to be believed.
std::size_t variety(const Seen& seen) {
  return std::set<std::int64_t>(seen.begin(), seen.end()).size();
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

Seen combined(const Seen& a, std::int64_t of_a, const Seen& b, std::int64_t of_b) {
  Seen sum(a.size());
  for (std::size_t t = 0; t < a.size(); ++t) sum[t] = of_a * a[t] + of_b * b[t];
  return sum;
}

Seen times(const Seen& a, const Seen& b) {
  Seen product(a.size());
  for (std::size_t t = 0; t < a.size(); ++t) product[t] = a[t] * b[t];
  return product;
}

// A term that is the size times `factor`; sizes with a divisor stay whole.
SizeExpr::Term term(std::int64_t factor, std::initializer_list<const SizeExpr*> sizes) {
  SizeExpr::Term made{factor, {}, {}};
  for (const SizeExpr* size : sizes) {
    const bool plain = size->divisor == 1 && size->constant == 0 && size->terms.size() == 1;
    if (!plain) {
      made.rounded.push_back(*size);
      continue;
    }
    const SizeExpr::Term& one = size->terms[0];
    made.factor *= one.factor;
    made.dims.insert(made.dims.end(), one.dims.begin(), one.dims.end());
    made.rounded.insert(made.rounded.end(), one.rounded.begin(), one.rounded.end());
  }
  return made;
}

SizeExpr expression(std::vector<SizeExpr::Term> terms, std::int64_t added, std::int64_t divisor = 1) {
  return {added, std::move(terms), divisor};
}

// seen = floor((sizes + b) / divisor): b, when all traces agree on one. Several are as good where they make
// no difference for any size between those traced (all of them may be multiples of something).
std::optional<std::int64_t> rounding(const Seen& seen, const Seen& sizes, std::int64_t divisor) {
  std::int64_t low = seen[0] * divisor - sizes[0];
  std::int64_t high = low + divisor - 1;
  std::int64_t step = divisor;
  for (std::size_t t = 1; t < seen.size(); ++t) {
    const std::int64_t least = seen[t] * divisor - sizes[t];
    low = std::max(low, least);
    high = std::min(high, least + divisor - 1);
    if (low > high) return std::nullopt;
    step = std::gcd(step, std::abs(sizes[t] - sizes[0]));
  }
  const std::int64_t rest = sizes[0] - floor_div(sizes[0], step) * step;
  if (floor_div(low + rest, step) != floor_div(high + rest, step)) throw Undetermined();
  return low <= 0 && high >= 0 ? 0 : (low > 0 ? low : high);
}

// factor * sizes + added
std::optional<std::pair<std::int64_t, std::int64_t>> line(const Seen& seen, const Seen& sizes) {
  for (std::size_t t = 1; t < seen.size(); ++t) {
    const std::int64_t run = sizes[t] - sizes[0];
    if (run == 0) continue;
    const std::int64_t rise = seen[t] - seen[0];
    if (rise % run != 0 || rise == 0) return std::nullopt;
    const std::int64_t factor = rise / run;
    const std::int64_t added = seen[0] - factor * sizes[0];
    for (std::size_t s = 0; s < seen.size(); ++s)
      if (factor * sizes[s] + added != seen[s]) return std::nullopt;
    return std::pair(factor, added);
  }
  return std::nullopt;
}

struct Ends {
  std::size_t first;
  std::size_t last;
};

Ends ends_of(const Seen& sizes) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return {static_cast<std::size_t>(least - sizes.begin()), static_cast<std::size_t>(most - sizes.begin())};
}

// floor((factor * sizes + b) / divisor), the smallest divisor first.
Found quotient(const Seen& seen, const Seen& sizes, std::initializer_list<const SizeExpr*> of) {
  const Ends ends = ends_of(sizes);
  const double slope = static_cast<double>(seen[ends.last] - seen[ends.first]) /
                       static_cast<double>(sizes[ends.last] - sizes[ends.first]);
  constexpr std::int64_t kMostFactor = 16;
  for (std::int64_t divisor = 2; divisor <= kMostDivisor; ++divisor) {
    const double about = slope * static_cast<double>(divisor);
    if (std::abs(about) > kMostFactor) break;
    for (const std::int64_t factor : {std::llround(std::floor(about)), std::llround(std::ceil(about))}) {
      if (factor == 0 || std::gcd(factor, divisor) != 1) continue;
      Seen scaled = sizes;
      for (std::int64_t& one : scaled) one *= factor;
      if (const auto added = rounding(seen, scaled, divisor))
        return expression({term(factor, of)}, *added, divisor);
    }
  }
  return std::nullopt;
}

// k * floor((a * n + b) / d) + c: a size rounded to multiples.
Found steps(const Seen& seen, const Known& known) {
  std::int64_t step = 0;
  for (const std::int64_t one : seen) step = std::gcd(step, std::abs(one - seen[0]));
  if (step < 2) return std::nullopt;
  const std::int64_t added = seen[0] - floor_div(seen[0], step) * step;
  Seen multiples = seen;
  for (std::int64_t& one : multiples) one = (one - added) / step;
  Found found = quotient(multiples, known.seen, {&known.size});
  if (!found) return std::nullopt;
  return expression({{step, {}, {*found}}}, added);
}

// n minus a multiple of d, or a multiple of d minus n: what a division leaves, or what is missing to the next
// multiple.
Found remainder(const Seen& seen, const Known& known) {
  for (const std::int64_t sign : {-1, 1}) {
    const Seen rest = combined(seen, 1, known.seen, -sign);
    for (std::int64_t divisor = 2; divisor <= kMostDivisor; ++divisor) {
      const std::int64_t added = rest[0] - floor_div(rest[0], divisor) * divisor;
      Seen multiples(rest.size());
      bool whole = true;
      for (std::size_t t = 0; whole && t < rest.size(); ++t) {
        whole = (rest[t] - added) % divisor == 0;
        multiples[t] = -sign * (rest[t] - added) / divisor;
      }
      if (!whole || variety(multiples) < 3) continue;
      const auto shift = rounding(multiples, known.seen, divisor);
      if (!shift) continue;
      const SizeExpr rounded = expression({term(1, {&known.size})}, *shift, divisor);
      return expression({{-sign * divisor, {}, {rounded}}, term(sign, {&known.size})}, added);
    }
  }
  return std::nullopt;
}

// Half of what is missing to the next multiple, rounded down or up, and a constant: padding on both sides.
Found half_remainder(const Seen& seen, const Known& known) {
  for (std::int64_t divisor = 2; divisor <= kMostDivisor; ++divisor) {
    for (const std::int64_t up : {0, 1}) {
      const auto half = [&](std::size_t t) {
        const std::int64_t size = known.seen[t];
        return (floor_div(size + divisor - 1, divisor) * divisor - size + up) / 2;
      };
      const std::int64_t added = seen[0] - half(0);
      bool fits = true;
      for (std::size_t t = 0; fits && t < seen.size(); ++t) fits = seen[t] == half(t) + added;
      if (!fits) continue;
      const SizeExpr rounded = expression({term(1, {&known.size})}, divisor - 1, divisor);
      return expression({{divisor, {}, {rounded}}, term(-1, {&known.size})}, up + 2 * added, 2);
    }
  }
  return std::nullopt;
}

// a * n + b * m + c
Found plane(const Seen& seen, const Known& n, const Known& m) {
  const auto d = [](const Seen& s, std::size_t t) { return s[t] - s[0]; };
  std::size_t first = 1;
  while (first < seen.size() && d(n.seen, first) == 0 && d(m.seen, first) == 0) ++first;
  for (std::size_t t = first + 1; t < seen.size(); ++t) {
    const std::int64_t area = d(n.seen, first) * d(m.seen, t) - d(n.seen, t) * d(m.seen, first);
    if (area == 0) continue;
    const std::int64_t of_n = d(seen, first) * d(m.seen, t) - d(seen, t) * d(m.seen, first);
    const std::int64_t of_m = d(n.seen, first) * d(seen, t) - d(n.seen, t) * d(seen, first);
    if (of_n % area != 0 || of_m % area != 0 || of_n == 0 || of_m == 0) return std::nullopt;
    const Seen rest = combined(seen, 1, combined(n.seen, of_n / area, m.seen, of_m / area), -1);
    if (!constant(rest)) return std::nullopt;
    return expression({term(of_n / area, {&n.size}), term(of_m / area, {&m.size})}, rest[0]);
  }
  return std::nullopt;
}

// floor((n + m + c) / d) and floor((n - m + c) / d)
Found quotient_of_two(const Seen& seen, const Known& n, const Known& m) {
  for (const auto& [of_n, of_m] : {std::pair{1, 1}, std::pair{1, -1}, std::pair{-1, 1}}) {
    const Seen sum = combined(n.seen, of_n, m.seen, of_m);
    if (variety(sum) < 3) continue;
    for (const std::int64_t divisor : {2, 3, 4, 8, 16, 32}) {
      if (const auto added = rounding(seen, sum, divisor))
        return expression({term(of_n, {&n.size}), term(of_m, {&m.size})}, *added, divisor);
    }
  }
  return std::nullopt;
}

Found product_of_two(const Seen& seen, const Known& n, const Known& m) {
  const Seen product = times(n.seen, m.seen);
  if (const auto found = line(seen, product))
    return expression({term(found->first, {&n.size, &m.size})}, found->second);
  return quotient(seen, product, {&n.size, &m.size});
}

Found product_of_three(const Seen& seen, const std::vector<Known>& known) {
  const std::size_t count = std::min(known.size(), kMostInTriples);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i; j < count; ++j) {
      const Seen two = times(known[i].seen, known[j].seen);
      for (std::size_t k = j; k < count; ++k) {
        const Seen product = times(two, known[k].seen);
        const auto all = {&known[i].size, &known[j].size, &known[k].size};
        if (const auto found = line(seen, product); found && found->second == 0)
          return expression({term(found->first, all)}, 0);
        if (const auto found = line(product, seen); found && found->second == 0)
          return expression({term(1, all)}, 0, found->first);
      }
    }
  }
  return std::nullopt;
}

template <class Work>
Found first_of(const std::vector<Known>& known, const Work& work) {
  for (const Known& one : known)
    if (Found found = work(one)) return found;
  return std::nullopt;
}

template <class Work>
Found first_of_pairs(const std::vector<Known>& known, const Work& work) {
  const std::size_t count = std::min(known.size(), kMostInPairs);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i; j < count; ++j)
      if (Found found = work(known[i], known[j])) return found;
  }
  return std::nullopt;
}

}  // namespace

void Solver::add(const Known& known) {
  if (constant(known.seen)) return;
  if (by_seen_.emplace(known.seen, known_.size()).second) known_.push_back(known);
}

std::optional<SizeExpr> Solver::solve(const Seen& seen) const try {
  if (constant(seen)) return SizeExpr{seen[0], {}, 1};
  if (const auto found = by_seen_.find(seen); found != by_seen_.end()) return known_[found->second].size;
  std::vector<Known> told;  // enough about to build on
  for (const Known& one : known_)
    if (variety(one.seen) >= 3) told.push_back(one);
  if (auto found = first_of(told, [&](const Known& n) -> Found {
        const auto straight = line(seen, n.seen);
        if (!straight) return std::nullopt;
        return expression({term(straight->first, {&n.size})}, straight->second);
      }))
    return found;
  if (auto found = first_of(told, [&](const Known& n) { return quotient(seen, n.seen, {&n.size}); }))
    return found;
  if (auto found =
          first_of_pairs(told, [&](const Known& n, const Known& m) { return product_of_two(seen, n, m); }))
    return found;
  if (auto found = first_of_pairs(told, [&](const Known& n, const Known& m) { return plane(seen, n, m); }))
    return found;
  if (auto found = first_of(told, [&](const Known& n) { return steps(seen, n); })) return found;
  if (auto found = first_of(told, [&](const Known& n) { return remainder(seen, n); })) return found;
  if (auto found = first_of(told, [&](const Known& n) { return half_remainder(seen, n); })) return found;
  if (auto found =
          first_of_pairs(told, [&](const Known& n, const Known& m) { return quotient_of_two(seen, n, m); }))
    return found;
  return product_of_three(seen, told);
} catch (const Undetermined&) {
  return std::nullopt;
}

Seen only(const Seen& seen, const std::vector<std::size_t>& traces) {
  Seen some;
  for (const std::size_t t : traces) some.push_back(seen[t]);
  return some;
}

Solver Solver::only(const std::vector<std::size_t>& traces) const {
  Solver some;
  for (const Known& one : known_) some.add({one.size, graph::only(one.seen, traces)});
  return some;
}

}  // namespace ballast::graph
