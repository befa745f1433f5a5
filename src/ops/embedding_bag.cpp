// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"
#include "ops/made_of_others.h"

namespace ballast {
namespace {

constexpr const char* kBag = "embedding_bag";

// Bags of n indices each: [bags, n] → [bags, features].
Tensor equal_bags(const Tensor& index, const Tensor& weight, const Tensor& factors,
                  const EmbeddingBagArgs& args) {
  if (index.shape()[1] == 0) return zeros({index.shape()[0], weight.shape()[1]}, weight.dtype());
  Tensor rows = embedding(index, weight);
  if (factors.defined()) rows = mul(rows, factors.to(rows.dtype()).unsqueeze(-1));
  if (!args.padding_idx) {
    if (args.mode == BagMode::max) return max(rows, 1);
    return args.mode == BagMode::sum ? sum(rows, 1) : mean(rows, 1);
  }
  const std::int64_t none = *args.padding_idx + (*args.padding_idx < 0 ? weight.shape()[0] : 0);
  const Tensor padding = eq(index, none);
  const Tensor gone = padding.unsqueeze(-1);
  const Tensor count = sum(logical_not(padding), 1, true);  // [bags, 1]
  if (args.mode == BagMode::max) {
    const Tensor largest = max(masked_fill(rows, gone, -std::numeric_limits<double>::infinity()), 1);
    return masked_fill(largest, eq(count, 0), 0);
  }
  const Tensor total = sum(masked_fill(rows, gone, 0), 1);
  return args.mode == BagMode::sum ? total : div(total, maximum(count, 1).to(total.dtype()));
}

// Where each bag of a list ends, the last at the list's end.
std::vector<std::int64_t> bag_edges(const Tensor& index, const EmbeddingBagArgs& args) {
  if (args.offsets.rank() != 1)
    fail(Errc::shape_mismatch, kBag, "offsets are {}, must be a list", ops::form(args.offsets));
  const Tensor numbers = ops::dense_indices(kBag, args.offsets);
  const auto offsets = numbers.span<std::int64_t>();
  std::vector<std::int64_t> edges(offsets.begin(), offsets.end());
  if (!args.include_last_offset) edges.push_back(index.shape()[0]);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const bool fits = i == 0 ? edges[i] == 0 : edges[i] >= edges[i - 1] && edges[i] <= index.shape()[0];
    if (!fits) fail(Errc::offset_out_of_range, kBag, "offset {} of a list of {}", edges[i], index.shape()[0]);
  }
  return edges;
}

}  // namespace

Tensor embedding_bag(const Tensor& index, const Tensor& weight, const EmbeddingBagArgs& args) {
  if (weight.rank() != 2 || !is_floating(weight.dtype()))
    fail(Errc::shape_mismatch, kBag, "weight is {}, must be [count, features]", ops::form(weight));
  const Tensor& factors = args.per_sample_weights;
  if (factors.defined() && (args.mode != BagMode::sum || factors.shape() != index.shape()))
    fail(Errc::invalid_argument, kBag, "per_sample_weights {} for {}: with sum, one for each index",
         ops::form(factors), ops::form(index));
  return ops::rounded_once(weight, [&](const Tensor& table) -> Tensor {
    if (index.rank() == 2) {
      if (args.offsets.defined())
        fail(Errc::invalid_argument, kBag, "offsets belong to a list of indices, not to {}",
             ops::form(index));
      return equal_bags(index, table, factors, args);
    }
    if (index.rank() != 1 || !args.offsets.defined())
      fail(Errc::shape_mismatch, kBag, "{}: [bags, n], or a list and offsets", ops::form(index));
    const std::vector<std::int64_t> edges = bag_edges(index, args);
    std::vector<Tensor> bags;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      const auto part = [&](const Tensor& list) {
        return list.defined() ? list.narrow(0, edges[i], edges[i + 1] - edges[i]).unsqueeze(0) : list;
      };
      bags.push_back(equal_bags(part(index), table, part(factors), args));
    }
    return bags.empty() ? zeros({0, table.shape()[1]}, table.dtype()) : concat(bags, 0);
  });
}

}  // namespace ballast
