// SPDX-License-Identifier: Apache-2.0
#include "model/scaffold_tree.h"

#include <functional>

#include "ballast/error.h"
#include "base/fail.h"
#include "model/scaffold_names.h"

namespace ballast {
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

std::uint64_t NameTree::hash(const Branch* parent, std::string_view name) const noexcept {
  const auto where = reinterpret_cast<std::uintptr_t>(parent);
  return hash_name(name) ^ (where * 0x9E3779B97F4A7C15U) >> 16U;
}

Branch& NameTree::child(Branch& parent, std::string_view name) {
  const auto same = [&](std::size_t i) {
    return branches_[i].parent == &parent && branches_[i].name == name;
  };
  index_.reserve(branches_.size() + 1);
  const std::uint64_t key = hash(&parent, name);
  if (const auto found = index_.find(key, same)) return branches_[*found];
  const std::size_t most = kMostBranches + checkpoint_.size() * kBranchesPerTensor;
  if (branches_.size() > most)
    fail(Errc::too_many, display(checkpoint_.path), "the names of its {} tensors have more than {} parts",
         checkpoint_.size(), most);
  static_cast<void>(index_.add(key, branches_.size(), same));
  Branch& made = branches_.emplace_back();
  made.name = name;
  made.parent = &parent;
  (parent.last == nullptr ? parent.first : parent.last->next) = &made;
  parent.last = &made;
  if (is_identifier(name)) segments_.insert(name);  // others are never asked for
  return made;
}

std::optional<ShapeView> NameTree::shape_of(const Branch& branch, std::string_view name,
                                            std::size_t rank) const {
  const auto found = index_.find(hash(&branch, name), [&](std::size_t i) {
    return branches_[i].parent == &branch && branches_[i].name == name;
  });
  if (!found || branches_[*found].tensor == kNoTensor) return std::nullopt;
  const ShapeView shape = checkpoint_[branches_[*found].tensor].shape;
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

}  // namespace ballast
