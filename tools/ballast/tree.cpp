// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <functional>
#include <map>
#include <memory>

#include "ballast/error.h"
#include "table.h"
#include "text.h"

namespace tool {
namespace {

constexpr std::size_t kFew = 8;  // children, which need no index

struct Sums {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::bitset<ballast::kDTypeCount> dtypes;

  void add(const Sums& other) {
    tensors += other.tensors;
    parameters += other.parameters;
    bytes += other.bytes;
    dtypes |= other.dtypes;
  }

  [[nodiscard]] std::string dtype_text() const {
    std::string text;
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      if (dtypes[i])
        text +=
            fmt::format("{}{}", text.empty() ? "" : " ", ballast::info(static_cast<ballast::DType>(i)).code);
    }
    return text;
  }
};

struct Node {
  std::string_view label;
  const Row* row = nullptr;  // a tensor of this very name, if there is one
  std::vector<std::unique_ptr<Node>> children;
  // Of those with many children. Ordered: no file can choose labels that collide.
  std::unique_ptr<std::map<std::string_view, Node*>> by_label;
  Sums sums;
  std::size_t contents = 0;  // hash of the names, dtypes and shapes below: equal blocks have equal ones
};

Node& child_of(Node& node, std::string_view label) {
  if (!node.children.empty() && node.children.back()->label == label) return *node.children.back();
  if (node.by_label == nullptr) {
    for (const auto& child : node.children) {
      if (child->label == label) return *child;
    }
  } else if (const auto found = node.by_label->find(label); found != node.by_label->end()) {
    return *found->second;
  }
  Node& made = *node.children.emplace_back(std::make_unique<Node>());
  made.label = label;
  if (node.by_label != nullptr) node.by_label->emplace(label, &made);
  if (node.by_label == nullptr && node.children.size() == kFew) {
    node.by_label = std::make_unique<std::map<std::string_view, Node*>>();
    for (const auto& child : node.children) node.by_label->emplace(child->label, child.get());
  }
  return made;
}

// False where it takes more nodes than are left; what it did stays.
bool insert(Node& root, const Row& row, std::size_t pieces, std::size_t& nodes_left) {
  Sums sums{row.tensors, row.parameters, row.bytes, {}};
  sums.dtypes.set(static_cast<std::size_t>(row.dtype));
  Node* node = &root;
  std::string_view left = row.name;
  for (std::size_t level = 0;; ++level) {
    const std::size_t dot = level < pieces ? left.find('.') : std::string_view::npos;
    const std::size_t before = node->children.size();
    Node& child = child_of(*node, left.substr(0, dot));
    const bool is_new = node->children.size() > before;
    if (is_new && nodes_left-- == 0) return false;
    node = &child;
    node->sums.add(sums);
    if (dot == std::string_view::npos) break;
    left.remove_prefix(dot + 1);
  }
  node->row = &row;
  return true;
}

Node tree_of(const std::vector<Row>& rows) {
  for (std::size_t pieces = kMostPieces;; pieces /= 2) {
    Node root;
    std::size_t nodes_left = most_nodes(rows.size());
    const bool fits = std::all_of(rows.begin(), rows.end(),
                                  [&](const Row& row) { return insert(root, row, pieces, nodes_left); });
    if (fits) return root;
  }
}

void describe(Node& node) {
  const auto mix = [&node](std::size_t value) {
    node.contents = node.contents * 0x9E3779B97F4A7C15U + value + 1;
  };
  if (node.row != nullptr) {
    mix(static_cast<std::size_t>(node.row->dtype));
    for (const std::int64_t dim : node.row->shape) mix(static_cast<std::size_t>(dim));
  }
  for (const auto& child : node.children) {
    describe(*child);
    mix(std::hash<std::string_view>{}(child->label));
    mix(child->contents);
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Numbered blocks stand in the order of their numbers, whatever the order of the file; everything else stays
// as it is there.
void sort_numbered(Node& node) {
  const auto numbered = [](const auto& child) { return is_number(child->label); };
  if (std::all_of(node.children.begin(), node.children.end(), numbered)) {
    std::stable_sort(node.children.begin(), node.children.end(),
                     [](const auto& a, const auto& b) { return natural_less(a->label, b->label); });
  }
  for (const auto& child : node.children) sort_numbered(*child);
}

class Printer {
 public:
  Printer(const Terminal& terminal, const TreeOptions& options) : terminal_(terminal), options_(options) {}

  void print(Output& out, const Node& root) {
    table_.stream(out, terminal_);
    children(root, "", 1);
    if (!table_.empty()) table_.print(out, terminal_);
  }

 private:
  // How many of the siblings from `first` on are numbered and alike.
  [[nodiscard]] std::size_t run_length(const Node& node, std::size_t first) const {
    std::size_t end = first + 1;
    if (!options_.fold || !is_number(node.children[first]->label)) return 1;
    while (end < node.children.size() && is_number(node.children[end]->label) &&
           node.children[end]->contents == node.children[first]->contents) {
      ++end;
    }
    return end - first;
  }

  // a.b.c where nothing branches off is one line.
  [[nodiscard]] static bool has_only_child(const Node& node) {
    return node.children.size() == 1 && node.row == nullptr;
  }

  static const Node& end_of_chain(const Node& top) {
    const Node* node = &top;
    while (has_only_child(*node)) node = node->children.front().get();
    return *node;
  }

  // What follows its own label.
  static std::string rest_of_chain(const Node& top) {
    std::string label;
    for (const Node* node = &top; has_only_child(*node);) {
      node = node->children.front().get();
      label += '.' + ballast::display(node->label);
    }
    return label;
  }

  [[nodiscard]] std::string label_of(const Node& first, const Node& last, std::size_t run) const {
    const std::string label = ballast::display(first.label);
    if (run == 1) return label + rest_of_chain(first);
    return fmt::format("{}{}{}{}  {}{}", label, terminal_.unicode ? "…" : "..", last.label,
                       rest_of_chain(first), terminal_.unicode ? "×" : "x", run);
  }

  void children(const Node& node, const std::string& prefix, int level) {
    for (std::size_t i = 0; i < node.children.size();) {
      const std::size_t run = run_length(node, i);
      const bool last = i + run == node.children.size();
      const std::string branch =
          prefix + (terminal_.unicode ? (last ? "└─ " : "├─ ") : (last ? "`- " : "|- "));
      const std::string below = prefix + (last ? "   " : terminal_.unicode ? "│  " : "|  ");
      const Node& top = *node.children[i];
      const Node& child = end_of_chain(top);
      Sums sums;
      for (std::size_t k = i; k < i + run; ++k) sums.add(node.children[k]->sums);
      const std::string label = label_of(top, *node.children[i + run - 1], run);
      line(branch + label, child, sums);
      if (options_.depth == 0 || level < options_.depth) children(child, below, level + 1);
      i += run;
    }
  }

  void line(const std::string& name, const Node& node, const Sums& sums) {
    const bool leaf = node.children.empty();
    const std::string what = leaf ? to_string(node.row->shape) : counted(sums.tensors, "tensor");
    const Style style = leaf ? Style::plain : Style::dim;
    table_.add({{name, leaf ? Style::plain : Style::bold},
                {sums.dtype_text(), Style::cyan},
                {what, style},
                {human_count(sums.parameters), style},
                {human_bytes(sums.bytes), style}});
  }

  const Terminal& terminal_;
  TreeOptions options_;
  Table table_{{{"NAME"}, {"DTYPE"}, {"SHAPE"}, {"PARAMETERS", Align::right}, {"SIZE", Align::right}}};
};

}  // namespace

void print_tree(Output& out, const Terminal& terminal, const std::vector<Row>& rows,
                const TreeOptions& options) {
  Node root = tree_of(rows);
  sort_numbered(root);
  if (options.fold) describe(root);
  Printer(terminal, options).print(out, root);
}

}  // namespace tool
