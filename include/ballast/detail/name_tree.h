// SPDX-License-Identifier: Apache-2.0
// The names of a checkpoint as a tree, split at dots: for adapt(), which tells layers by what stands beside
// each other, and for ballast new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)

namespace ballast::detail {

inline constexpr std::size_t kNoTensor = SIZE_MAX;

struct Branch {
  std::string_view name;           // the last segment, in the checkpoint
  std::size_t tensor = kNoTensor;  // position in the checkpoint of the tensor of this very name
  Branch* first = nullptr;         // child, in the file's order
  Branch* last = nullptr;
  Branch* next = nullptr;          // sibling
  const Branch* parent = nullptr;  // none of the root
  bool has_out_in = false;         // at or below it: a matrix with a bias that is not square, and how it lies
  bool has_in_out = false;
};

class NameTree {
 public:
  /// The checkpoint must live as long. Errc::too_many for names that have far more segments than models'.
  explicit NameTree(const Checkpoint& checkpoint);

  [[nodiscard]] const Branch& root() const noexcept { return branches_.front(); }

  /// Parents before children.
  [[nodiscard]] const std::deque<Branch>& branches() const noexcept { return branches_; }

  /// Its child `weight` is a square matrix beside a bias.
  [[nodiscard]] bool is_square_with_bias(const Branch& branch) const;

 private:
  void plant(std::string_view name, std::size_t position);
  Branch& child(Branch& parent, std::string_view name);
  /// The shape of a child that is a tensor of this rank; empty when there is none.
  [[nodiscard]] std::optional<ShapeView> shape_of(const Branch& branch, std::string_view name,
                                                  std::size_t rank) const;
  void look_at_matrices();

  const Checkpoint& checkpoint_;
  std::deque<Branch> branches_;
  std::map<std::pair<const Branch*, std::string_view>, Branch*> children_;
};

}  // namespace ballast::detail

#pragma GCC visibility pop
