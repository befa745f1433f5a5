// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/name_tree.h"

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast::detail {
namespace {

constexpr std::size_t kDeepestPath = 60;  // segments; a model's paths have at most 64
constexpr std::size_t kMostBranches = 100'000;
constexpr std::size_t kBranchesPerTensor = 4;

}  // namespace

NameTree::NameTree(const Checkpoint& checkpoint) : checkpoint_(checkpoint), branches_(1) {
  for (std::size_t i = 0; i < checkpoint.size(); ++i) plant(checkpoint[i].name, i);
  look_at_matrices();
}

void NameTree::plant(std::string_view name, std::size_t position) {
  Branch* at = &branches_.front();
  std::size_t depth = 0;
  for (std::string_view rest = name;;) {
    std::size_t dot = depth++ < kDeepestPath ? rest.find('.') : rest.npos;
    if (dot == 0 || dot + 1 == rest.size()) dot = rest.npos;  // no segment is empty: the rest is one name
    at = &child(*at, rest.substr(0, dot));
    if (dot == rest.npos) break;
    rest.remove_prefix(dot + 1);
  }
  at->tensor = position;
}

Branch& NameTree::child(Branch& parent, std::string_view name) {
  Branch*& found = children_[{&parent, name}];
  if (found != nullptr) return *found;
  const std::size_t most = kMostBranches + checkpoint_.size() * kBranchesPerTensor;
  if (branches_.size() > most)
    fail(Errc::too_many, display(checkpoint_.path), "the names of its {} tensors have more than {} parts",
         checkpoint_.size(), most);
  Branch& made = branches_.emplace_back();
  made.name = name;
  made.parent = &parent;
  found = &made;
  (parent.last == nullptr ? parent.first : parent.last->next) = &made;
  parent.last = &made;
  return made;
}

std::optional<ShapeView> NameTree::shape_of(const Branch& branch, std::string_view name,
                                            std::size_t rank) const {
  const auto found = children_.find({&branch, name});
  if (found == children_.end() || found->second->tensor == kNoTensor) return std::nullopt;
  const ShapeView shape = checkpoint_[found->second->tensor].shape;
  if (shape.size() != rank) return std::nullopt;
  return shape;
}

bool NameTree::is_square_with_bias(const Branch& branch) const {
  const auto weight = shape_of(branch, "weight", 2);
  return weight && (*weight)[0] == (*weight)[1] && shape_of(branch, "bias", 1);
}

void NameTree::look_at_matrices() {
  for (std::size_t i = branches_.size(); i-- > 0;) {  // children before parents
    Branch& branch = branches_[i];
    const auto weight = shape_of(branch, "weight", 2);
    const auto bias = shape_of(branch, "bias", 1);
    if (weight && bias && (*weight)[0] != (*weight)[1]) {
      branch.has_out_in = branch.has_out_in || (*bias)[0] == (*weight)[0];
      branch.has_in_out = branch.has_in_out || (*bias)[0] == (*weight)[1];
    }
    for (const Branch* child = branch.first; child != nullptr; child = child->next) {
      branch.has_out_in = branch.has_out_in || child->has_out_in;
      branch.has_in_out = branch.has_in_out || child->has_in_out;
    }
  }
}

}  // namespace ballast::detail
