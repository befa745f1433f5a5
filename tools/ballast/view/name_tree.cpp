// SPDX-License-Identifier: Apache-2.0
#include "view/name_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ballast/error.h"
#include "view/response.h"

namespace tool::view {
namespace {

constexpr std::size_t kFewChildren = 8;  // which need no index
constexpr std::size_t kLongestPath = 1000;
constexpr std::string_view kFolded = "#";

bool is_all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Takes the next piece off a name or path, of which so many are told apart.
std::string_view take_piece(std::string_view& left, std::uint32_t depth, std::size_t pieces) {
  const std::size_t dot = depth < pieces ? left.find('.') : std::string_view::npos;
  const std::string_view piece = left.substr(0, dot);
  left = dot == std::string_view::npos ? std::string_view() : left.substr(dot + 1);
  return piece;
}

bool has_more(std::string_view before, std::string_view piece) {
  return before.size() > piece.size();
}

}  // namespace

// Ordered maps: no file can choose labels that collide.
struct NameTree::Building {
  std::vector<std::unique_ptr<std::map<std::string_view, std::uint32_t>>> by_label;
  std::vector<std::unique_ptr<std::set<std::string_view>>> numbers;
  std::vector<std::uint32_t> folded_child;  // 0: none
  std::size_t numbered = 0;                 // numbers that are kept
};

NameTree::NameTree(const std::vector<Row>& rows, bool fold) : fold_(fold) {
  while (!build(rows)) pieces_ /= 2;
}

bool NameTree::build(const std::vector<Row>& rows) {
  Building building;
  nodes_.clear();
  nodes_.emplace_back();
  building.by_label.emplace_back();
  building.numbers.emplace_back();
  building.folded_child.emplace_back();
  const std::size_t most = most_nodes(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    insert(building, rows[i], static_cast<std::uint32_t>(i));
    if (nodes_.size() + building.numbered > most) return false;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    NameNode& node = nodes_[i];
    if (building.numbers[i] != nullptr) {
      node.numbers = static_cast<std::uint32_t>(building.numbers[i]->size());
      if (node.numbers == 1) {  // alone, it keeps its own number
        node.label = *building.numbers[i]->begin();
        node.numbers = 0;
      }
    }
    const auto is_numbered = [&](std::uint32_t child) { return is_all_digits(nodes_[child].label); };
    if (std::all_of(node.children.begin(), node.children.end(), is_numbered)) {
      std::stable_sort(node.children.begin(), node.children.end(), [&](std::uint32_t a, std::uint32_t b) {
        return natural_less(nodes_[a].label, nodes_[b].label);
      });
    }
  }
  return true;
}

std::uint32_t NameTree::child_of(Building& building, std::uint32_t node, std::string_view label, bool folds) {
  if (folds && building.folded_child[node] != 0) return building.folded_child[node];
  // A piece of a name that is itself "#" is told from the numbers' by its missing set of numbers.
  const auto is_it = [&](std::uint32_t child) {
    return nodes_[child].label == label && building.numbers[child] == nullptr;
  };
  const auto& children = nodes_[node].children;
  if (!folds && !children.empty() && is_it(children.back())) return children.back();
  if (!folds && building.by_label[node] == nullptr) {
    for (const std::uint32_t child : children) {
      if (is_it(child)) return child;
    }
  } else if (!folds) {
    const auto found = building.by_label[node]->find(label);
    if (found != building.by_label[node]->end()) return found->second;
  }
  const auto made = static_cast<std::uint32_t>(nodes_.size());
  NameNode& child = nodes_.emplace_back();
  child.label = label;
  child.parent = node;
  child.depth = nodes_[node].depth + 1;
  building.by_label.emplace_back();
  building.numbers.push_back(folds ? std::make_unique<std::set<std::string_view>>() : nullptr);
  building.folded_child.push_back(0);
  if (folds) building.folded_child[node] = made;
  NameNode& parent = nodes_[node];
  parent.children.push_back(made);
  auto& by_label = building.by_label[node];
  if (by_label != nullptr && !folds) by_label->emplace(label, made);
  if (by_label == nullptr && parent.children.size() == kFewChildren) {
    by_label = std::make_unique<std::map<std::string_view, std::uint32_t>>();
    for (const std::uint32_t each : parent.children) {
      if (building.numbers[each] == nullptr) by_label->emplace(nodes_[each].label, each);
    }
  }
  return made;
}

void NameTree::insert(Building& building, const Row& row, std::uint32_t number) {
  const bool counts = row.tied_to.empty();
  const auto add_to = [&](std::uint32_t at) {
    NameNode& node = nodes_[at];
    node.all_tensors += 1;
    if (!counts) return;
    node.parameters += row.parameters;
    node.bytes += row.bytes;
    for (auto& [dtype, bytes] : node.dtypes) {
      if (dtype != row.dtype) continue;
      bytes += row.bytes;
      return;
    }
    node.dtypes.emplace_back(row.dtype, row.bytes);
  };
  std::uint32_t at = 0;
  std::string_view left = row.name;
  add_to(at);
  while (true) {
    const std::string_view before = left;
    const std::string_view piece = take_piece(left, nodes_[at].depth, pieces_);
    const bool folds = fold_ && is_all_digits(piece);
    at = child_of(building, at, folds ? kFolded : piece, folds);
    if (folds && building.numbers[at]->insert(piece).second) ++building.numbered;
    add_to(at);
    if (!has_more(before, piece)) break;
  }
  nodes_[at].tensors.push_back(number);
}

std::uint32_t NameTree::find(std::string_view path) const {
  const auto nowhere = [&]() -> Refused {
    return {404, "not-found", fmt::format("nothing at {}", ballast::quoted(path))};
  };
  if (path.empty()) return 0;
  if (path.front() == '@') {
    std::uint32_t node = 0;
    const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), node);
    if (error != std::errc{} || end != path.data() + path.size() || node >= nodes_.size()) throw nowhere();
    return node;
  }
  std::uint32_t at = 0;
  std::string_view left = path;
  while (true) {
    const std::string_view before = left;
    const std::string_view piece = take_piece(left, nodes_[at].depth, pieces_);
    const auto& children = nodes_[at].children;
    const auto found = std::find_if(children.begin(), children.end(),
                                    [&](std::uint32_t child) { return nodes_[child].label == piece; });
    if (found == children.end()) throw nowhere();
    at = *found;
    if (!has_more(before, piece)) return at;
  }
}

std::string NameTree::plain_path_of(std::uint32_t node) const {
  std::vector<std::string_view> pieces;
  for (std::uint32_t at = node; at != 0; at = nodes_[at].parent) {
    if (nodes_[at].label == kFolded && nodes_[at].numbers == 0) return {};  // a name's own "#"
    pieces.push_back(nodes_[at].label);
  }
  std::reverse(pieces.begin(), pieces.end());
  return fmt::format("{}", fmt::join(pieces, "."));
}

std::string NameTree::path_of(std::uint32_t node) const {
  if (node == 0) return {};
  std::string path = plain_path_of(node);
  const bool comes_back = !path.empty() && path.size() <= kLongestPath && path.front() != '@' &&
                          ballast::display(path, kLongestPath) == path;
  return comes_back ? path : fmt::format("@{}", node);
}

std::uint32_t NameTree::end_of_chain(std::uint32_t node) const {
  while (nodes_[node].children.size() == 1 && nodes_[node].tensors.empty())
    node = nodes_[node].children.front();
  return node;
}

std::string NameTree::label_between(std::uint32_t above, std::uint32_t node) const {
  std::vector<std::string> pieces;
  for (std::uint32_t at = node; at != above; at = nodes_[at].parent)
    pieces.push_back(ballast::display(nodes_[at].label));
  std::reverse(pieces.begin(), pieces.end());
  return fmt::format("{}", fmt::join(pieces, "."));
}

}  // namespace tool::view
