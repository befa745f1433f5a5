// SPDX-License-Identifier: Apache-2.0
#include "model/tell_layers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ballast/detail/name_tree.h"
#include "ballast/error.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/key_path.h"
#include "checkpoint/pattern.h"
#include "model/adapter.h"
#include "model/layer_words.h"

namespace ballast {
namespace {

using detail::Branch;
using detail::kNoTensor;
using detail::NameTree;
using enum LayerKind;

bool is_made_of_layers(LayerKind kind) {
  return kind == multihead_attention || kind == lstm || kind == gru || kind == rnn;
}

struct Ranks {
  std::size_t least;
  std::size_t most;
};

// Of a layer's weight.
Ranks ranks_of(LayerKind kind) {
  switch (kind) {
    case linear:
    case embedding:
      return {2, 2};
    case bilinear:
      return {3, 3};
    case conv:
    case conv_transpose:
      return {3, 5};
    case batch_norm:
    case layer_norm:
    case group_norm:
    case instance_norm:
    case rms_norm:
    case prelu:
      return {1, 1};
    default:
      return {0, std::numeric_limits<std::size_t>::max()};
  }
}

class Telling {
 public:
  Telling(const Checkpoint& in, Adapter from, const AdaptOptions& options)
      : in_(in),
        from_(from),
        is_turned_((from == Adapter::pytorch) != (options.to == Adapter::pytorch)),
        to_(options.to),
        like_(options.like),
        tree_(in) {
    std::vector<std::string> texts;
    for (const LayerIs& rule : options.layers) texts.push_back(rule.match);
    std::vector<Pattern> patterns = kept_patterns(texts);
    for (std::size_t i = 0; i < patterns.size(); ++i)
      said_.push_back({std::move(patterns[i]), options.layers[i].kind});
  }

  ToldLayers run() {
    visit(tree_.root(), "");
    told_.layer_of.assign(in_.size(), ToldLayers::kNone);
    for (const auto& [tensor, layer] : belongs_) told_.layer_of[tensor] = layer;
    for (const Said& rule : said_) {
      if (!rule.has_matched) told_.unmatched.push_back(rule.pattern.text());
    }
    return std::move(told_);
  }

 private:
  // What is no layer, and yet none to be passed over in silence.
  void look_at_strangers(const Branch& branch, const std::string& path) {
    for (const Branch* each = branch.first; each != nullptr; each = each->next) {
      if (each->tensor == kNoTensor) continue;
      const ShapeView shape = in_[each->tensor].shape;
      const std::string_view last = key_path::last(each->name);
      if (last != each->name && words::is_field(last))
        undecided(path, each->name, shape, "a part of its name is empty, or there are more than 60");
      else if (from_ == Adapter::pytorch && shape.size() == 2 && words::is_unknown_matrix(each->name))
        undecided(path, each->name, shape, "of a weight norm or a recurrent cell, which cannot be converted");
    }
  }

  void visit(const Branch& branch, const std::string& path) {
    if (is_turned_ && !is_said_none(path)) look_at_strangers(branch, path);
    const LayerKind kind = kind_of(branch, path).value_or(none);
    if (is_made_of_layers(kind)) {
      const std::set<std::size_t> taken = taken_by_rows(branch, kind);
      if (!taken.empty()) {
        told_.layers.push_back({path, kind});
        return claim_taken(branch, path, told_.layers.size() - 1, taken);
      }
    } else if (kind != none) {
      for (const Branch* each = branch.first; each != nullptr; each = each->next)
        if (each->tensor != kNoTensor) belongs_.emplace_back(each->tensor, told_.layers.size());
      told_.layers.push_back({path, kind});
    }
    for (const Branch* child = branch.first; child != nullptr; child = child->next)
      if (child->first != nullptr) visit(*child, key_path::joined(path, child->name));
  }

  static void collect(const Branch& branch, const std::string& path,
                      std::map<std::string, std::size_t>& fields) {
    for (const Branch* each = branch.first; each != nullptr; each = each->next) {
      if (each->tensor != kNoTensor) fields.emplace(key_path::joined(path, each->name), each->tensor);
      collect(*each, key_path::joined(path, each->name), fields);
    }
  }

  // The tensors below a layer that the tables know: those of rows all of whose tensors are there, under the
  // names of the world they come from, or under the native ones, which that world may have too.
  [[nodiscard]] std::set<std::size_t> taken_by_rows(const Branch& branch, LayerKind kind) const {
    std::map<std::string, std::size_t> fields;
    collect(branch, "", fields);
    std::set<std::size_t> taken;
    for (const AdapterRow& row : world_of(from_).table()) take_row(row, kind, row.foreign, fields, taken);
    for (const AdapterRow& row : world_of(to_).table()) take_row(row, kind, row.native, fields, taken);
    return taken;
  }

  static void take_row(const AdapterRow& row, LayerKind kind, const AdapterRow::Names& names,
                       const std::map<std::string, std::size_t>& fields, std::set<std::size_t>& taken) {
    if (row.kind != kind) return;
    for (const auto& [field, tensor] : fields) {
      const auto star = match_star(names[0], field);
      if (!star) continue;
      std::set<std::size_t> of_row;
      for (std::size_t i = 0; i < AdapterRow::count(names); ++i)
        if (const auto at = fields.find(fill_star(names[i], *star)); at != fields.end())
          of_row.insert(at->second);
      if (of_row.size() == AdapterRow::count(names)) taken.insert(of_row.begin(), of_row.end());
    }
  }

  // What lies among them goes with them, if no layout could change it; a branch without any is its own.
  void claim_taken(const Branch& branch, const std::string& path, std::size_t layer,
                   const std::set<std::size_t>& taken) {
    for (const Branch* each = branch.first; each != nullptr; each = each->next) {
      const std::string name = key_path::joined(path, each->name);
      if (each->tensor != kNoTensor) {
        const ShapeView shape = in_[each->tensor].shape;
        if (taken.contains(each->tensor) || shape.size() != 2)
          belongs_.emplace_back(each->tensor, layer);
        else
          told_.undecided.push_back(fmt::format("{} {}: no tensor of a {} that is known", quoted(name),
                                                to_string(shape), ballast::name(told_.layers[layer].kind)));
      }
      std::map<std::string, std::size_t> below;
      collect(*each, "", below);
      const bool has_taken = std::any_of(below.begin(), below.end(),
                                         [&](const auto& field) { return taken.contains(field.second); });
      if (has_taken)
        claim_taken(*each, name, layer, taken);
      else if (each->first != nullptr)
        visit(*each, name);
    }
  }

  static const Branch* child(const Branch& branch, std::string_view name) {
    for (const Branch* each = branch.first; each != nullptr; each = each->next) {
      if (each->name == name) return each;
    }
    return nullptr;
  }

  // Of a child that is a tensor of this rank.
  [[nodiscard]] std::optional<ShapeView> shape(const Branch& branch, std::string_view name,
                                               std::size_t rank) const {
    const Branch* found = child(branch, name);
    if (found == nullptr || found->tensor == kNoTensor || in_[found->tensor].shape.size() != rank)
      return std::nullopt;
    return in_[found->tensor].shape;
  }

  [[nodiscard]] std::optional<std::int64_t> length(const Branch& branch, std::string_view name) const {
    const auto found = shape(branch, name, 1);
    return found ? std::optional((*found)[0]) : std::nullopt;
  }

  // The tensor that a layer of its own cannot be without, in whichever world.
  [[nodiscard]] const Branch* main_tensor(const Branch& branch) const {
    for (const char* name : {"weight", "gamma", "alpha"}) {
      const Branch* found = child(branch, name);
      if (found != nullptr && found->tensor != kNoTensor) return found;
    }
    return nullptr;
  }

  // A pattern for a layer hits those below it, and what holds them, too.
  [[nodiscard]] bool can_be(const Branch& branch, LayerKind kind) const {
    return kind == none || is_made_of_layers(kind) || main_tensor(branch) != nullptr;
  }

  LayerKind fitting(const Branch& branch, const std::string& path, LayerKind kind) {
    const Ranks ranks = ranks_of(kind);
    const Branch* main = main_tensor(branch);
    if (main == nullptr) return kind;
    const ShapeView shape = in_[main->tensor].shape;
    if (shape.size() >= ranks.least && shape.size() <= ranks.most) return kind;
    return undecided(path, main->name, shape,
                     fmt::format("is said to be a {}, whose rank is another", name(kind)));
  }

  [[nodiscard]] bool is_said_none(const std::string& path) const {
    for (std::size_t i = said_.size(); i-- > 0;)
      if (said_[i].pattern.matches(path)) return said_[i].kind == none;
    return false;
  }

  // Nothing: no layer by itself, its children may be some.
  std::optional<LayerKind> kind_of(const Branch& branch, const std::string& path) {
    for (std::size_t i = said_.size(); i-- > 0;) {
      if (!said_[i].pattern.matches(path) || !can_be(branch, said_[i].kind)) continue;
      said_[i].has_matched = true;
      return fitting(branch, path, said_[i].kind);
    }
    if (length(branch, "running_mean") && length(branch, "running_mean") == length(branch, "running_var"))
      return batch_norm;
    if (const auto kind = recurrent(branch)) return kind;
    if (from_ == Adapter::pytorch &&
        (shape(branch, "in_proj_weight", 2) || shape(branch, "q_proj_weight", 2)))
      return multihead_attention;
    if (!is_turned_) return std::nullopt;
    if (const auto weight = shape(branch, "weight", 2)) return matrix(branch, path, *weight);
    if (from_ != Adapter::pytorch) return burn_vector(branch, path);
    if (const auto weight = length(branch, "weight")) return vector(branch, path, *weight);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<LayerKind> recurrent(const Branch& branch) const {
    if (from_ == Adapter::burn) {
      const auto is_gate = [&](const char* gate) {
        const Branch* found = child(branch, gate);
        return found != nullptr && child(*found, "input_transform") != nullptr;
      };
      // One of somebody's own may lack some: taken_by_rows() asks for all.
      if (is_gate("input_gate") && is_gate("forget_gate")) return lstm;
      if (is_gate("reset_gate") && is_gate("update_gate")) return gru;
      return std::nullopt;
    }
    const auto input = shape(branch, "weight_ih_l0", 2);
    const auto hidden = shape(branch, "weight_hh_l0", 2);
    if (!input || !hidden) return std::nullopt;
    if (shape(branch, "weight_hr_l0", 2)) return lstm;
    const bool is_rows = from_ == Adapter::pytorch;  // [gates * hidden, hidden], or transposed
    const std::int64_t gates = (*hidden)[is_rows ? 0 : 1];
    const std::int64_t size = (*hidden)[is_rows ? 1 : 0];
    if (size == 0 || gates % size != 0) return std::nullopt;
    return gates / size == 4 ? lstm : gates / size == 3 ? gru : rnn;
  }

  // How matrices with a bias lie around this one; what only the whole model has in common is no neighbour.
  [[nodiscard]] std::pair<bool, bool> around(const Branch& branch) const {
    for (const Branch* at = &branch; at->parent != nullptr; at = at->parent) {
      if (at->has_out_in || at->has_in_out) return {at->has_out_in, at->has_in_out};
    }
    return {false, false};
  }

  std::optional<LayerKind> matrix(const Branch& branch, const std::string& path, ShapeView weight) {
    const bool is_torch = from_ == Adapter::pytorch;
    const auto bias = length(branch, "bias");
    if (!bias) return matrix_alone(path, weight);
    if (weight[0] != weight[1]) {
      if (*bias == weight[is_torch ? 0 : 1]) return linear;
      if (*bias == weight[is_torch ? 1 : 0]) return turned(path, weight);
      return undecided(path, "weight", weight, "its bias fits neither a Linear nor anything else known");
    }
    const auto [out_in, in_out] = around(branch);
    if (is_torch ? !in_out : !out_in) return linear;
    if (is_torch ? !out_in : !in_out) return turned(path, weight);
    return undecided(path, "weight", weight, "its neighbours lie both ways, and it is square");
  }

  // It lies as the other world's Linear does: GPT-2's in PyTorch.
  LayerKind turned(const std::string& path, ShapeView weight) {
    if (from_ != Adapter::pytorch)
      return undecided(path, "weight", weight, "[out, in] in a file that is said to have [in, out]");
    told_.turned.push_back(quoted(path));
    return none;
  }

  LayerKind matrix_alone(const std::string& path, ShapeView weight) {
    if (like_ != nullptr && weight[0] != weight[1]) {
      if (const auto at = like_->position(key_path::joined(path, "weight"))) {
        const ShapeView wanted = (*like_)[*at].shape;
        if (wanted.size() == 2 && wanted[0] == weight[1] && wanted[1] == weight[0]) return linear;
        if (std::ranges::equal(wanted, weight)) return none;
      }
    }
    const std::string name = words::called(path);
    const bool is_embedding = words::say_embedding(name);
    const bool is_linear = words::say_linear(name);
    if (is_embedding == is_linear)
      return undecided(path, "weight", weight, "linear or embedding: no bias, and its name tells nothing");
    return by_name(path, is_linear ? linear : embedding);
  }

  LayerKind vector(const Branch& branch, const std::string& path, std::int64_t weight) {
    if (length(branch, "bias") == weight) return layer_norm;
    if (child(branch, "bias") != nullptr) return none;
    if (like_ != nullptr) {
      const std::string layer = path.empty() ? "" : path + ".";
      if (like_->contains(layer + "gamma")) return rms_norm;
      if (like_->contains(layer + "alpha")) return prelu;
      if (like_->contains(layer + "weight")) return none;
    }
    const std::string name = words::called(path);
    const bool is_norm = words::say_norm(name);
    const bool is_prelu = words::say_activation(name);
    if (is_norm == is_prelu)
      return undecided(path, "weight", Shape{weight},
                       "rms_norm or prelu: no bias, and its name tells nothing");
    return by_name(path, is_norm ? rms_norm : prelu);
  }

  std::optional<LayerKind> burn_vector(const Branch& branch, const std::string& path) {
    const auto gamma = length(branch, "gamma");
    if (gamma && length(branch, "beta") == gamma) return layer_norm;
    const bool is_alone = branch.first != nullptr && branch.first->next == nullptr;
    if (!is_alone) return std::nullopt;
    if (length(branch, "alpha")) return prelu;
    if (!gamma) return std::nullopt;
    if (like_ != nullptr && like_->contains(path + ".weight")) return rms_norm;
    if (words::say_norm(words::called(path))) return by_name(path, rms_norm);
    return undecided(path, "gamma", Shape{*gamma}, "rms_norm, or a parameter of somebody's own (none)");
  }

  LayerKind undecided(const std::string& path, std::string_view field, ShapeView weight,
                      std::string_view why) {
    told_.undecided.push_back(
        fmt::format("{} {}: {}", quoted(key_path::joined(path, field)), to_string(weight), why));
    return none;
  }

  LayerKind by_name(const std::string& path, LayerKind kind) {
    told_.by_name.push_back(fmt::format("{} ({})", quoted(path), name(kind)));
    return kind;
  }

  const Checkpoint& in_;
  Adapter from_;
  bool is_turned_;  // one of the two worlds has [out, in], the other [in, out]
  Adapter to_;
  const Checkpoint* like_;
  NameTree tree_;
  struct Said {
    Pattern pattern;
    LayerKind kind;
    bool has_matched = false;
  };

  std::vector<Said> said_;
  std::vector<std::pair<std::size_t, std::size_t>> belongs_;  // tensor, layer
  ToldLayers told_;
};

}  // namespace

ToldLayers tell_layers(const Checkpoint& in, Adapter from, const AdaptOptions& options) {
  return Telling(in, from, options).run();
}

}  // namespace ballast
