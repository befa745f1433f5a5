// SPDX-License-Identifier: Apache-2.0
#include "ballast/diff.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "ballast/stats.h"
#include "base/enum_names.h"
#include "base/fail.h"
#include "base/hash_xxh3.h"
#include "base/largest_first.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/require_data.h"
#include "checkpoint/tree_quantization.h"
#include "proof/compare.h"
#include "tensor/blocks.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

std::uint64_t content_hash(const Tensor& tensor) {
  Xxh3 hash;
  for_each_block(tensor, [&](std::uint64_t, std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.digest();
}

class Differ {
 public:
  Differ(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options)
      : a_(with_numbers_of_tree(marks::with_ties(dequantize(a)))),
        b_(with_numbers_of_tree(marks::with_ties(dequantize(b)))),
        options_(options),
        progress_(options.progress, a_.total_bytes()) {
    require_data(a_, display(a_.path));
    require_data(b_, display(b_.path));
  }

  DiffReport run() {
    pair_up();
    compare_bits();
    compare_values();
    if (options_.lengths) measure_equal();
    compare_layouts();
    if (options_.find_renamed) find_renamed();
    check_unchanged();
    for (const std::size_t i : only_b_) {
      if (!renamed_b_.contains(i)) add(Change::only_b, b_[i].name, nullptr, &b_, i);
    }
    return std::move(report_);
  }

 private:
  TensorDiff& add(Change change, std::string_view name, const Checkpoint* a, const Checkpoint* b,
                  std::size_t index) {
    TensorDiff item{.change = change, .name = std::string(name)};
    const Entry entry = (a != nullptr ? *a : *b)[index];
    const Shape shape(entry.shape);
    if (a != nullptr) {
      item.dtype_a = entry.dtype;
      item.shape_a = shape;
    } else {
      item.dtype_b = entry.dtype;
      item.shape_b = shape;
    }
    report_.tensors.push_back(std::move(item));
    return report_.tensors.back();
  }

  void pair_up() {
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const auto in_b = b_.position(a_[i].name);
      TensorDiff& item = add(Change::only_a, a_[i].name, &a_, nullptr, i);
      if (!in_b) {
        only_a_.push_back(i);
        continue;
      }
      const Entry other = b_[*in_b];
      item.dtype_b = other.dtype;
      item.shape_b = Shape(other.shape);
      item.change = Change::equal;
      if (item.shape_a != item.shape_b) {
        item.change = Change::shape;
      } else if (item.dtype_a != item.dtype_b) {
        item.change = Change::dtype;
        if (comparable(item.dtype_a, item.dtype_b)) apart_.push_back(i);
      } else if (other.bytes > 0) {
        same_kind_.push_back(i);
      }
    }
    for (std::size_t i = 0; i < b_.size(); ++i) {
      if (!a_.contains(b_[i].name)) only_b_.push_back(i);
    }
  }

  [[nodiscard]] std::vector<TensorPair> pairs(const std::vector<std::size_t>& indices) const {
    std::vector<TensorPair> result;
    result.reserve(indices.size());
    for (const std::size_t i : indices) result.emplace_back(a_[i].tensor(), b_.tensor(a_[i].name));
    return result;
  }

  void check_unchanged() const {
    ChangeCheck check;
    for (const std::size_t i : same_kind_) check(a_[i].tensor());
    for (const std::size_t i : apart_) check(a_[i].tensor());
    for (const std::size_t i : same_kind_) check(b_.tensor(a_[i].name));
    for (const std::size_t i : apart_) check(b_.tensor(a_[i].name));
  }

  void compare_bits() {
    const std::vector<char> same = same_bits(pairs(same_kind_), progress_);
    for (std::size_t k = 0; k < same.size(); ++k) {
      if (same[k] != 0) continue;
      report_.tensors[same_kind_[k]].change = Change::values;
      apart_.push_back(same_kind_[k]);
    }
  }

  void compare_values() {
    std::sort(apart_.begin(), apart_.end());
    const std::vector<Distance> found = distances(pairs(apart_), options_, progress_);
    const bool tolerant = options_.tolerance > 0 || options_.relative > 0;
    for (std::size_t k = 0; k < found.size(); ++k) {
      TensorDiff& item = report_.tensors[apart_[k]];
      item.distance = found[k];
      if (tolerant && found[k].outside == 0) item.change = Change::within;
    }
  }

  // What is equal has a length, too, which counts in sums over a layer.
  void measure_equal() {
    std::vector<std::size_t> equal;
    std::vector<Tensor> tensors;
    for (const std::size_t i : same_kind_) {
      if (report_.tensors[i].change != Change::equal) continue;
      equal.push_back(i);
      tensors.push_back(a_[i].tensor());
    }
    const std::vector<TensorStats> found = stats(tensors);
    for (std::size_t k = 0; k < equal.size(); ++k) {
      Distance& distance = report_.tensors[equal[k]].distance;
      distance.count = found[k].count;
      distance.l2_a = distance.l2_b = found[k].l2();
      if (distance.l2_a > 0) distance.rel_l2 = 0;
    }
  }

  // [in, out] and [out, in] may be the same bits.
  void compare_layouts() {
    if (layout::of(a_) == layout::of(b_)) return;
    for (TensorDiff& item : report_.tensors)
      if ((item.change == Change::equal || item.change == Change::within) && item.shape_a.size() > 1)
        item.change = Change::layout;
  }

  // Tensors of one side only, by dtype and shape, then by a hash of the content; what has one hash is
  // compared bit by bit before anybody is told.
  void find_renamed() {
    using Kind = std::pair<DType, std::vector<std::int64_t>>;
    std::map<Kind, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> groups;
    const auto kind = [](const Entry& entry) {
      return Kind(entry.dtype, {entry.shape.begin(), entry.shape.end()});
    };
    for (const std::size_t i : only_a_) groups[kind(a_[i])].first.push_back(i);
    for (const std::size_t i : only_b_) groups[kind(b_[i])].second.push_back(i);
    std::vector<std::size_t> from;
    std::vector<std::size_t> to;
    for (const auto& [shape, group] : groups) {
      if (group.first.empty() || group.second.empty()) continue;
      from.insert(from.end(), group.first.begin(), group.first.end());
      to.insert(to.end(), group.second.begin(), group.second.end());
    }
    const std::vector<std::uint64_t> hashes_a = hashes(a_, from);
    const std::vector<std::uint64_t> hashes_b = hashes(b_, to);
    std::unordered_multimap<std::uint64_t, std::size_t> by_hash;
    for (std::size_t k = to.size(); k-- > 0;) by_hash.emplace(hashes_b[k], to[k]);
    for (std::size_t k = 0; k < from.size(); ++k) match(from[k], hashes_a[k], by_hash);
  }

  static std::vector<std::uint64_t> hashes(const Checkpoint& checkpoint,
                                           const std::vector<std::size_t>& indices) {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(indices.size());
    for (const std::size_t i : indices) sizes.push_back(checkpoint[i].bytes);
    std::vector<std::uint64_t> found(indices.size());
    largest_first(sizes, [&](std::size_t k) { found[k] = content_hash(checkpoint[indices[k]].tensor()); });
    return found;
  }

  void match(std::size_t from, std::uint64_t hash,
             std::unordered_multimap<std::uint64_t, std::size_t>& by_hash) {
    SharedProgress silent(none_, 0);
    const auto [begin, end] = by_hash.equal_range(hash);
    for (auto candidate = begin; candidate != end; ++candidate) {
      const Entry a = a_[from];
      const Entry b = b_[candidate->second];
      if (a.dtype != b.dtype || !std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end()))
        continue;
      const std::vector<TensorPair> pair = {{a.tensor(), b.tensor()}};
      if (same_bits(pair, silent)[0] == 0) continue;
      TensorDiff& item = report_.tensors[from];
      item.change = Change::renamed;
      item.other = b.name;
      item.dtype_b = b.dtype;
      item.shape_b = item.shape_a;
      renamed_b_.insert(candidate->second);
      by_hash.erase(candidate);
      return;
    }
  }

  const Checkpoint a_;
  const Checkpoint b_;
  const DiffOptions& options_;
  SharedProgress progress_;
  const Progress none_;
  DiffReport report_;  // in A's order while it is made: position i is A's tensor i
  std::vector<std::size_t> only_a_;
  std::vector<std::size_t> only_b_;
  std::unordered_set<std::size_t> renamed_b_;
  std::vector<std::size_t> same_kind_;  // same dtype and shape
  std::vector<std::size_t> apart_;      // values to be compared
};

}  // namespace

std::string_view name(Change change) noexcept {
  static constexpr std::string_view kNames[] = {"equal",   "within-tolerance", "values", "dtype", "shape",
                                                "renamed", "only-a",           "only-b", "layout"};
  return name_in<Change::layout>(kNames, change);
}

std::size_t DiffReport::count(Change change) const noexcept {
  return static_cast<std::size_t>(std::count_if(
      tensors.begin(), tensors.end(), [&](const TensorDiff& item) { return item.change == change; }));
}

bool DiffReport::same() const noexcept {
  return std::all_of(tensors.begin(), tensors.end(), [](const TensorDiff& item) {
    return item.change == Change::equal || item.change == Change::within;
  });
}

DiffReport diff(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options) {
  if (!(options.tolerance >= 0) || !(options.relative >= 0))
    fail(Errc::invalid_argument, "diff", "a tolerance is 0 or more");
  return Differ(a, b, options).run();
}

}  // namespace ballast
