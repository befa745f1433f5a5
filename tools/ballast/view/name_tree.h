// SPDX-License-Identifier: Apache-2.0
// The names of a file as a tree with sums, built once and asked often. Folded, the numbers of a list share a
// node: layers.0.weight and layers.1.weight are both below `layers.#`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rows.h"

namespace tool::view {

struct NameNode {
  std::string_view label;  ///< between two dots; "#" where numbers share it
  std::uint32_t parent = 0;
  std::uint32_t depth = 0;    ///< pieces of a name above and in it
  std::uint32_t numbers = 0;  ///< how many share it; 0 where it is no number
  std::vector<std::uint32_t> children;
  std::vector<std::uint32_t> tensors;  ///< whose names end here
  // Of all below. A tensor under several names counts once in the last three.
  std::uint64_t all_tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::vector<std::pair<ballast::DType, std::uint64_t>> dtypes;  ///< bytes of each
};

class NameTree {
 public:
  /// The rows must live as long.
  NameTree(const std::vector<Row>& rows, bool fold);

  [[nodiscard]] const NameNode& root() const { return nodes_.front(); }

  [[nodiscard]] const NameNode& operator[](std::uint32_t node) const { return nodes_[node]; }

  /// A path of path_of(), or one that somebody wrote. Refused (404) when it leads nowhere.
  [[nodiscard]] std::uint32_t find(std::string_view path) const;
  /// "model.layers.#"; "@12" where the text would not come back as it is: control characters, bytes that are
  /// no text, very long ones.
  [[nodiscard]] std::string path_of(std::uint32_t node) const;
  /// From `node` down as long as nothing branches off: a.b.c is one row.
  [[nodiscard]] std::uint32_t end_of_chain(std::uint32_t node) const;
  /// What stands between two nodes of a chain, made safe to show: "layers.#".
  [[nodiscard]] std::string label_between(std::uint32_t above, std::uint32_t node) const;

 private:
  struct Building;
  /// False when it takes more nodes than there may be.
  [[nodiscard]] bool build(const std::vector<Row>& rows);
  void insert(Building& building, const Row& row, std::uint32_t number);
  std::uint32_t child_of(Building& building, std::uint32_t node, std::string_view label, bool folds);
  [[nodiscard]] std::string plain_path_of(std::uint32_t node) const;

  std::vector<NameNode> nodes_;
  bool fold_;
  std::size_t pieces_ = kMostPieces;  ///< of a name, that are told apart
};

}  // namespace tool::view
