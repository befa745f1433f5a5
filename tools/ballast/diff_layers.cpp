// SPDX-License-Identifier: Apache-2.0
#include "diff_layers.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "rows.h"

namespace tool {
namespace {

// Without its last part, and with `depth` parts at most.
std::string layer_of(std::string_view name, int depth) {
  const std::size_t last = name.rfind('.');
  const std::string_view layer = last == std::string_view::npos ? std::string_view() : name.substr(0, last);
  std::size_t end = depth > 0 ? 0 : std::string_view::npos;
  for (int i = 0; i < depth && end != std::string_view::npos; ++i)
    end = layer.find('.', i == 0 ? 0 : end + 1);
  return std::string(layer.substr(0, end));
}

LayerDiff layer_with(const ballast::TensorDiff& item, std::string name) {
  const ballast::Distance& d = item.distance;
  return {.name = std::move(name),
          .tensors = 1,
          .changed = item.change == ballast::Change::equal ? 0U : 1U,
          .values = d.count,
          .differing = d.differing,
          .max_abs = d.max_abs,
          .max_rel = d.max_rel,
          .l2_a = d.l2_a,
          .l2_diff = d.l2_diff};
}

void add_layer(LayerDiff& sum, const LayerDiff& next) {
  sum.tensors += next.tensors;
  sum.changed += next.changed;
  sum.values += next.values;
  sum.differing += next.differing;
  sum.max_abs = std::max(sum.max_abs, next.max_abs);
  sum.max_rel = std::max(sum.max_rel, next.max_rel);
  sum.l2_a = std::hypot(sum.l2_a, next.l2_a);
  sum.l2_diff = std::hypot(sum.l2_diff, next.l2_diff);
}

// Largest first: where one of two values is not finite, or A is all zero and B is not, they are infinitely
// far apart.
double moved_by(const LayerDiff& layer) {
  if (std::isinf(layer.max_abs)) return HUGE_VAL;
  return layer.rel_l2().value_or(layer.differing == 0 ? 0 : HUGE_VAL);
}

void sort_layers(std::vector<LayerDiff>& layers, std::string_view order) {
  const auto by = [&](auto less) { std::stable_sort(layers.begin(), layers.end(), less); };
  if (order == "name")
    by([](const LayerDiff& a, const LayerDiff& b) { return natural_less(a.name, b.name); });
  else if (order == "max")
    by([](const LayerDiff& a, const LayerDiff& b) { return a.max_abs > b.max_abs; });
  else if (order == "rel-l2")
    by([](const LayerDiff& a, const LayerDiff& b) { return moved_by(a) > moved_by(b); });
}

// Rows of one key become one, in the order of first appearance.
class LayerSums {
 public:
  void put(const std::string& key, LayerDiff layer) {
    const auto [found, is_new] = places_.emplace(key, rows_.size());
    if (is_new) return rows_.push_back(std::move(layer));
    LayerDiff& row = rows_[found->second];
    if (row.name != layer.name) row.name = key, row.layers += layer.layers;
    add_layer(row, layer);
  }

  [[nodiscard]] std::vector<LayerDiff> take() { return std::move(rows_); }

 private:
  std::vector<LayerDiff> rows_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

std::optional<double> LayerDiff::rel_l2() const {
  if (l2_a > 0 && std::isfinite(l2_a) && std::isfinite(l2_diff)) return l2_diff / l2_a;
  return std::nullopt;
}

std::vector<LayerDiff> diff_layers(const std::vector<ballast::TensorDiff>& tensors,
                                   const LayerChoice& choice) {
  LayerSums layers;
  for (const ballast::TensorDiff& item : tensors) {
    const std::string name = layer_of(item.name, choice.depth);
    layers.put(name, layer_with(item, name));
  }
  std::vector<LayerDiff> rows = layers.take();
  if (!choice.all) std::erase_if(rows, [](const LayerDiff& layer) { return layer.changed == 0; });
  if (choice.fold) {
    LayerSums folded;
    for (const LayerDiff& row : rows) folded.put(folded_name(row.name), row);
    rows = folded.take();
  }
  sort_layers(rows, choice.order);
  return rows;
}

}  // namespace tool
