// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint as rows of a listing: filtered, sorted, and repeated blocks folded into one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"

namespace tool {

struct Row {
  std::string name;  ///< as in the file; numbers are '#' where `tensors` > 1
  ballast::DType dtype;
  ballast::ShapeView shape;
  std::uint64_t tensors = 1;
  std::uint64_t parameters = 0;  ///< of all its tensors
  std::uint64_t bytes = 0;       ///< of all its tensors
  std::size_t first = 0;         ///< position of its first tensor in the checkpoint
  std::string tied_to = {};      ///< the first name of the very same tensor
  std::uint64_t packed = 0;      ///< bytes of the file, where they are fewer; of all its tensors
  bool constant = false;         ///< no weight: see mark_constants()
};

struct Totals {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tied = 0;  ///< of the tensors; their bytes and parameters count once, under the first name
  std::array<std::uint64_t, ballast::kDTypeCount> by_dtype{};

  void add(const Row& row);
  /// "161 tensors, 25.6 M parameters, 97.8 MiB (F32 107, I64 54)"
  [[nodiscard]] std::string text() const;
  /// "F32", or "F32 107, I64 54" when there are several.
  [[nodiscard]] std::string dtypes() const;
};

[[nodiscard]] std::vector<Row> rows_of(const ballast::Checkpoint& checkpoint);
/// A tree of names tells the pieces between dots apart, so many of a name at the most: what more there are
/// stay in one.
inline constexpr std::size_t kMostPieces = 256;
/// Nodes such a tree may have. Names may have hundreds of pieces each and share none, which would take
/// gigabytes: then fewer are told apart, half as many each time, until the nodes are enough.
[[nodiscard]] constexpr std::size_t most_nodes(std::size_t rows) noexcept {
  return (std::size_t{1} << 16U) + 4 * rows;
}

/// Marks what an ONNX model's exporter wrote for its operators, so that it is listed apart from the weights.
void mark_constants(std::vector<Row>& rows, const std::vector<std::string>& names);
/// Rows that differ only in the numbers between dots, slashes and underscores become one. Keeps the order of
/// first appearance.
[[nodiscard]] std::vector<Row> folded(const std::vector<Row>& rows);
/// layers.12.weight → layers.#.weight: numbers between dots, slashes and underscores.
[[nodiscard]] std::string folded_name(std::string_view name);
/// "file", "name" (numbers inside names count as numbers), "dtype" (by its code), "shape" (by rank, then by
/// dimension), "parameters", "size" (which is "bytes", too) or "packed" (largest first).
void sort_rows(std::vector<Row>& rows, std::string_view order);
/// layers.2 before layers.10.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);
[[nodiscard]] Totals totals_of(const std::vector<Row>& rows);

}  // namespace tool
