// SPDX-License-Identifier: Apache-2.0
// The check of a finished object graph: no deeper than anything Python writes, and dicts with every key once.
#include <unordered_map>

#include "ballast/detail/name_index.h"
#include "base/hash.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

struct Frame {
  Node* node;
  std::size_t next;
};

Ref nth_part(const ObjectRecord& object, std::size_t index) {
  const Ref parts[] = {object.args, object.kwargs, object.state, object.items, object.pairs};
  return parts[index];
}

// Child `index`, or nullopt past the last; keys of dicts count.
std::optional<Ref> child(const ValueTree& tree, const Node* node, std::size_t index) {
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
[[gnu::always_inline]] inline void prefetch_child(const Node* node, std::size_t index) {
  constexpr std::size_t kAhead = 64;
  const bool sequence = node->kind == NodeKind::list || node->kind == NodeKind::tuple;
  const std::size_t count = sequence                       ? node->size
                            : node->kind == NodeKind::dict ? std::size_t{node->size} * 2
                                                           : 0;
  if (index + kAhead < count && node->refs[index + kAhead].is_node())
    __builtin_prefetch(node->refs[index + kAhead].node(), 1);
}

// Text, numbers and None; other keys are never equal here.
std::optional<std::string_view> key_bytes(const Ref& key) {
  if (!key.is_node()) return std::string_view(reinterpret_cast<const char*>(&key), sizeof key);
  if (key.node()->kind == NodeKind::string) return std::string_view(key.node()->text, key.node()->size);
  return std::nullopt;
}

bool same_key(const Ref& a, const Ref& b) {
  if (a == b) return true;
  return a.is_node() && b.is_node() && a.node()->kind == NodeKind::string &&
         b.node()->kind == NodeKind::string && key_bytes(a) == key_bytes(b);
}

bool has_repeated_keys(const Node* dict) {
  const auto key = [&](std::size_t i) -> const Ref& { return dict->refs[i * 2]; };
  constexpr std::size_t kFew = 8;  // for which a look at each pair is faster
  if (dict->size <= kFew) {
    for (std::size_t i = 1; i < dict->size; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (same_key(key(i), key(j))) return true;
      }
    }
    return false;
  }
  const auto hash = [&](std::size_t i) {
    const std::string_view itself(reinterpret_cast<const char*>(&key(i)), sizeof(Ref));
    return hash_name(key_bytes(key(i)).value_or(itself));
  };
  bool repeated = false;
  detail::NameIndex index;
  index.put_all(
      dict->size, hash, [&](std::size_t i, std::size_t j) { return same_key(key(i), key(j)); },
      [&](std::size_t, std::size_t) { repeated = true; });
  return repeated;
}

// Python's rule: the place of the first, the value of the last.
void make_unique(Node* dict) {
  std::unordered_map<std::string, std::size_t> places;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dict->size; ++i) {
    const Ref key = dict->refs[i * 2];
    const Ref value = dict->refs[i * 2 + 1];
    if (const auto bytes = key_bytes(key)) {
      const auto [place, added] =
          places.try_emplace(std::string(key.is_node() ? "s" : "n") + std::string(*bytes), kept);
      if (!added) {
        dict->refs[place->second * 2 + 1] = value;
        continue;
      }
    }
    dict->refs[kept * 2] = key;
    dict->refs[kept * 2 + 1] = value;
    ++kept;
  }
  dict->size = static_cast<std::uint32_t>(kept);
}

bool has_children(const Node* node) {
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

void Objects::check_graph(Ref root) {
  std::vector<Frame> frames;
  const auto enter = [&](Ref value) {
    if (!value.is_node()) return;
    Node* node = value.node();
    if (node->visited || !has_children(node)) return;
    node->visited = true;
    if (node->kind == NodeKind::dict && has_repeated_keys(node)) make_unique(node);
    frames.push_back({node, 0});
    if (frames.size() > kMaxDepth) refuse(Errc::too_deep, "objects nested more than {} deep", kMaxDepth);
  };
  enter(root);
  while (!frames.empty()) {
    Frame& top = frames.back();
    if (const auto next = child(*tree_, top.node, top.next)) {
      prefetch_child(top.node, top.next++);
      enter(*next);
    } else {
      frames.pop_back();
    }
  }
}

}  // namespace ballast::torch
