// SPDX-License-Identifier: Apache-2.0
// The check of a finished object graph: no deeper than anything Python writes, dicts with every key once,
// sets with every element once.
#include <algorithm>
#include <unordered_map>

#include "ballast/detail/name_index.h"
#include "base/hash.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

struct Visit {
  ValueNode* node;
  std::size_t next;
  std::size_t highest = 0;
};

Ref nth_part(const ObjectRecord& object, std::size_t index) {
  const Ref parts[] = {object.args, object.kwargs, object.state, object.items, object.pairs};
  return parts[index];
}

// Child `index`, or nullopt past the last; keys of dicts count.
std::optional<Ref> child(const ValueTree& tree, const ValueNode* node, std::size_t index) {
  std::size_t own = 0;
  switch (node->kind) {
    case NodeKind::list:
    case NodeKind::tuple:
    case NodeKind::set:
      own = node->size;
      if (index < own) return node->refs[index];
      break;
    case NodeKind::dict:
      own = std::size_t{node->size} * 2;
      if (index < own) return node->refs[index];
      break;
    case NodeKind::object:
      own = 5;
      if (index < own) return nth_part(*node->object, index);
      break;
    default:
      break;
  }
  if (index == own && node->has_attributes) return tree.attributes_of(node);
  return std::nullopt;
}

// Nodes lie far apart when there are many of them: those of a few children ahead are on their way meanwhile.
// Inlined by force: g++ takes a function that does nothing but this for one that does nothing.
[[gnu::always_inline]] inline void prefetch_child(const ValueNode* node, std::size_t index) {
  constexpr std::size_t kAhead = 64;
  const bool sequence = node->kind == NodeKind::list || node->kind == NodeKind::tuple;
  const std::size_t count = sequence                       ? node->size
                            : node->kind == NodeKind::dict ? std::size_t{node->size} * 2
                                                           : 0;
  if (index + kAhead < count && node->refs[index + kAhead].is_node())
    __builtin_prefetch(node->refs[index + kAhead].node(), 1);
}

bool is_plain_text(Ref value) {
  return value.is_node() && value.node()->kind == NodeKind::string && value.node()->type == 0;
}

std::string_view text_of(Ref value) {
  return {value.node()->text, value.node()->size};
}

// Keys of a dict, elements of a set.
class Keys {
 public:
  explicit Keys(const ValueNode* container)
      : container_(container), step_(container->kind == NodeKind::dict ? 2 : 1) {}

  [[nodiscard]] std::size_t size() const { return container_->size; }

  [[nodiscard]] Ref operator[](std::size_t i) const { return container_->refs[i * step_]; }

  [[nodiscard]] bool are_all_text() const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_plain_text((*this)[i])) return false;
    }
    return true;
  }

 private:
  const ValueNode* container_;
  std::size_t step_;
};

bool has_repeated_text(const Keys& keys, Budget& budget) {
  constexpr std::size_t kFew = 8;  // for which a look at each pair is faster
  if (keys.size() <= kFew) {
    for (std::size_t i = 1; i < keys.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (text_of(keys[i]).size() != text_of(keys[j]).size()) continue;
        budget.step(steps_for_text(text_of(keys[i]).size()));
        if (text_of(keys[i]) == text_of(keys[j])) return true;
      }
    }
    return false;
  }
  bool repeated = false;
  detail::NameIndex index;
  index.put_all(
      keys.size(),
      [&](std::size_t i) {
        budget.step(2 * steps_for_text(text_of(keys[i]).size()));  // and to be compared
        return hash_name(text_of(keys[i]));
      },
      [&](std::size_t i, std::size_t j) { return text_of(keys[i]) == text_of(keys[j]); },
      [&](std::size_t, std::size_t) { repeated = true; });
  return repeated;
}

bool has_children(const ValueNode* node) {
  switch (node->kind) {
    case NodeKind::list:
    case NodeKind::tuple:
    case NodeKind::set:
    case NodeKind::dict:
      return node->size != 0 || node->has_attributes;
    case NodeKind::object:
      return true;
    default:
      return node->has_attributes;
  }
}

}  // namespace

// Python's rule: the place and the key of the first, the value of the last.
void Objects::make_unique(ValueNode* container) {
  const Keys keys(container);
  if (keys.size() < 2 || (keys.are_all_text() && !has_repeated_text(keys, budget()))) return;
  const bool is_dict = container->kind == NodeKind::dict;
  NameMap<std::size_t> places;
  std::uint64_t taken = 0;
  std::string key;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < container->size; ++i) {
    key.clear();
    append_key(key, keys[i], tree(), budget());
    const std::uint64_t cost = key.size() + 64;
    budget().take(cost);
    taken += cost;
    const auto [place, added] = places.try_emplace(key, kept);
    if (added) {
      container->refs[kept * (is_dict ? 2 : 1)] = keys[i];
      if (is_dict) container->refs[kept * 2 + 1] = container->refs[i * 2 + 1];
      ++kept;
    } else if (is_dict) {
      container->refs[place->second * 2 + 1] = container->refs[i * 2 + 1];
    }
  }
  container->size = static_cast<std::uint32_t>(kept);
  budget().give_back(taken);
}

// Visits everything once; what is met again may lie deeper than it did the first time, so then the depth is
// counted by itself.
void Objects::check_graph(Ref root) {
  std::vector<Visit> frames;
  bool shares = false;
  const auto enter = [&](Ref value) {
    if (!value.is_node()) return;
    ValueNode* node = value.node();
    if (!has_children(node)) return;
    shares = shares || node->visited;
    if (node->visited) return;
    node->visited = true;
    if (node->kind == NodeKind::dict || node->kind == NodeKind::set) make_unique(node);
    frames.push_back({node, 0});
    if (frames.size() > kMaxDepth) refuse(Errc::too_deep, "objects nested more than {} deep", kMaxDepth);
  };
  enter(root);
  while (!frames.empty()) {
    Visit& top = frames.back();
    if (const auto next = child(tree(), top.node, top.next)) {
      prefetch_child(top.node, top.next++);
      enter(*next);
    } else {
      frames.pop_back();
    }
  }
  if (shares) check_depth(root);
}

// The longest way down that meets nothing twice: a node is as high as the highest of its children and one.
void Objects::check_depth(Ref root) {
  std::unordered_map<const ValueNode*, std::size_t> heights;  // 0: above the one that is looked at
  std::vector<Visit> frames;
  const auto enter = [&](Ref value) -> std::size_t {
    if (!value.is_node() || !has_children(value.node())) return 0;
    const auto [place, added] = heights.try_emplace(value.node(), 0);
    if (!added) return place->second;
    budget().take(64);
    frames.push_back({value.node(), 0});
    return 0;
  };
  static_cast<void>(enter(root));
  while (!frames.empty()) {
    const std::size_t at = frames.size() - 1;
    const ValueNode* node = frames[at].node;
    if (const auto next = child(tree(), node, frames[at].next)) {
      ++frames[at].next;
      const std::size_t below = enter(*next);
      frames[at].highest = std::max(frames[at].highest, below);
      continue;
    }
    const std::size_t height = frames[at].highest + 1;
    if (height > kMaxDepth) refuse(Errc::too_deep, "objects nested more than {} deep", kMaxDepth);
    heights[node] = height;
    frames.pop_back();
    if (!frames.empty()) frames.back().highest = std::max(frames.back().highest, height);
  }
  budget().give_back(heights.size() * 64);
}

}  // namespace ballast::torch
