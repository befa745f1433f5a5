// SPDX-License-Identifier: Apache-2.0
// files/F/tree: what lies below a piece of the names, with sums.
#include <algorithm>
#include <functional>
#include <utility>

#include "ballast/error.h"
#include "view/app.h"

namespace tool::view {
namespace {

using Children = Document::Children;
using Child = Document::Child;

Children children_of(const NameTree& tree, std::uint32_t node) {
  Children list;
  for (const std::uint32_t number : tree[node].tensors) list.push_back({node, number, true});
  for (const std::uint32_t top : tree[node].children) {
    const std::uint32_t end = tree.end_of_chain(top);
    const NameNode& child = tree[end];
    const bool is_tensor = child.children.empty() && child.tensors.size() == 1;
    list.push_back({end, is_tensor ? child.tensors.front() : 0, is_tensor});
  }
  return list;
}

// Below `above`: what its parents do not say.
std::string label_of(const Document& document, const NameTree& tree, std::uint32_t above,
                     const Child& child) {
  return child.node == above ? ballast::display(document.rows()[child.tensor].name)
                             : tree.label_between(above, child.node);
}

template <class Key, class Less>
void sort_by(Children& list, Key key, Less less) {
  std::vector<std::pair<decltype(key(list.front())), Child>> keyed;
  keyed.reserve(list.size());
  for (const Child& child : list) keyed.emplace_back(key(child), child);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const auto& a, const auto& b) { return less(a.first, b.first); });
  std::transform(keyed.begin(), keyed.end(), list.begin(), [](const auto& each) { return each.second; });
}

Children sorted_children(const Document& document, const NameTree& tree, std::uint32_t node,
                         const std::string& by) {
  Children list = children_of(tree, node);
  if (list.empty()) return list;
  const auto size = [&](auto of_row, auto of_node) {
    return [&document, &tree, of_row, of_node](const Child& child) {
      return child.is_tensor ? document.rows()[child.tensor].*of_row : tree[child.node].*of_node;
    };
  };
  if (by == "name")
    sort_by(
        list, [&](const Child& child) { return label_of(document, tree, node, child); }, natural_less);
  if (by == "bytes") sort_by(list, size(&Row::bytes, &NameNode::bytes), std::greater<>());
  if (by == "parameters") sort_by(list, size(&Row::parameters, &NameNode::parameters), std::greater<>());
  return list;
}

// How often what is in the group is repeated: the numbers that share it, or the tensors of one name.
std::uint64_t repeats(const NameTree& tree, std::uint32_t above, std::uint32_t node) {
  if (tree[node].children.empty()) return tree[node].tensors.size();
  for (std::uint32_t at = node; at != above; at = tree[at].parent) {
    if (tree[at].numbers > 0) return tree[at].numbers;
  }
  return 0;
}

Json group_row(const NameTree& tree, std::uint32_t above, std::uint32_t group, const std::string& label) {
  const NameNode& node = tree[group];
  Json dtypes = Json::object();
  for (const auto& [dtype, bytes] : node.dtypes) dtypes[std::string(ballast::info(dtype).code)] = bytes;
  return {{"kind", "group"},
          {"path", tree.path_of(group)},
          {"label", label},
          {"count", repeats(tree, above, group)},
          {"tensors", node.all_tensors},
          {"parameters", node.parameters},
          {"bytes", node.bytes},
          {"dtypes", std::move(dtypes)}};
}

}  // namespace

Json tensor_row(Document& document, std::size_t number, const std::string& label) {
  const Row& row = document.rows()[number];
  const std::string name = ballast::display(row.name);
  return {{"kind", "tensor"},
          {"path", name},
          {"label", label},
          {"n", number},
          {"dtype", ballast::info(row.dtype).code},
          {"shape", shape_array(row.shape)},
          {"parameters", row.parameters},
          {"bytes", row.bytes},
          {"tied", document.tied(number)}};
}

Response get_tree(const Call& call) {
  Document& document = call.document();
  const bool fold = call.query.flag("fold", true);
  const NameTree& tree = document.tree(fold);
  const std::uint32_t node = tree.find(call.query.text("path"));
  const std::string sort = call.query.one_of("sort", {"file", "name", "bytes", "parameters"});
  const auto list =
      document.children({fold, node, sort}, [&] { return sorted_children(document, tree, node, sort); });
  const Page page = page_of_query(call.query);
  Json rows = Json::array();
  for (std::size_t i = page.offset; i < list->size() && rows.size() < page.limit; ++i) {
    const Child& child = (*list)[i];
    const std::string label = label_of(document, tree, node, child);
    rows.push_back(child.is_tensor ? tensor_row(document, child.tensor, label)
                                   : group_row(tree, node, child.node, label));
  }
  return json_response({{"path", tree.path_of(node)}, {"total", list->size()}, {"rows", std::move(rows)}});
}

}  // namespace tool::view
