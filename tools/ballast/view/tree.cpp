// SPDX-License-Identifier: Apache-2.0
// files/F/tree: what lies below a piece of the names, with sums.
#include <algorithm>

#include "ballast/error.h"
#include "view/app.h"

namespace tool::view {
namespace {

// A group, or a tensor by its number.
struct Child {
  bool is_tensor;
  std::uint32_t at;  // a node; or a tensor's number
  std::uint64_t bytes;
  std::uint64_t parameters;
  std::string label;
};

Child child_tensor(const std::vector<Row>& rows, std::uint32_t number, std::string label) {
  return {true, number, rows[number].bytes, rows[number].parameters, std::move(label)};
}

std::vector<Child> children_of(const Document& document, const NameTree& tree, std::uint32_t node) {
  std::vector<Child> list;
  for (const std::uint32_t number : tree[node].tensors)
    list.push_back(child_tensor(document.rows(), number, ballast::display(document.rows()[number].name)));
  for (const std::uint32_t top : tree[node].children) {
    const std::uint32_t end = tree.end_of_chain(top);
    std::string label = tree.label_between(node, end);
    const NameNode& child = tree[end];
    if (child.children.empty() && child.tensors.size() == 1)
      list.push_back(child_tensor(document.rows(), child.tensors.front(), std::move(label)));
    else
      list.push_back({false, end, child.bytes, child.parameters, std::move(label)});
  }
  return list;
}

void sort_children(std::vector<Child>& list, const std::string& by) {
  const auto sort = [&](auto less) { std::stable_sort(list.begin(), list.end(), less); };
  if (by == "name") sort([](const Child& a, const Child& b) { return natural_less(a.label, b.label); });
  if (by == "bytes") sort([](const Child& a, const Child& b) { return a.bytes > b.bytes; });
  if (by == "parameters") sort([](const Child& a, const Child& b) { return a.parameters > b.parameters; });
}

// How often what is in the group is repeated: the numbers that share it, or the tensors of one name.
std::uint64_t repeats(const NameTree& tree, std::uint32_t above, std::uint32_t node) {
  if (tree[node].children.empty()) return tree[node].tensors.size();
  for (std::uint32_t at = node; at != above; at = tree[at].parent) {
    if (tree[at].numbers > 0) return tree[at].numbers;
  }
  return 0;
}

Json group_row(const NameTree& tree, std::uint32_t above, const Child& child) {
  const NameNode& node = tree[child.at];
  Json dtypes = Json::object();
  for (const auto& [dtype, bytes] : node.dtypes) dtypes[std::string(ballast::info(dtype).code)] = bytes;
  return {{"kind", "group"},
          {"path", tree.path_of(child.at)},
          {"label", child.label},
          {"count", repeats(tree, above, child.at)},
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
  const NameTree& tree = document.tree(call.query.flag("fold", true));
  const std::uint32_t node = tree.find(call.query.text("path"));
  std::vector<Child> list = children_of(document, tree, node);
  sort_children(list, call.query.one_of("sort", {"file", "name", "bytes", "parameters"}));
  const Page page = page_of_query(call.query);
  Json rows = Json::array();
  for (std::size_t i = page.offset; i < list.size() && rows.size() < page.limit; ++i) {
    rows.push_back(list[i].is_tensor ? tensor_row(document, list[i].at, list[i].label)
                                     : group_row(tree, node, list[i]));
  }
  return json_response({{"path", tree.path_of(node)}, {"total", list.size()}, {"rows", std::move(rows)}});
}

}  // namespace tool::view
