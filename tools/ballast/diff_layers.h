// SPDX-License-Identifier: Apache-2.0
// The tensors of a diff summed up by layer: which part of a model moved, and how far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/diff.h"

namespace tool {

struct LayerDiff {
  std::string name;           ///< "layers.3.attn" of "layers.3.attn.weight"; empty for what is in no layer
  std::uint64_t tensors = 0;  ///< of either side
  std::uint64_t changed = 0;  ///< of them: all that are not equal
  std::uint64_t values = 0;   ///< compared
  std::uint64_t differing = 0;
  double max_abs = 0;
  double max_rel = 0;
  double l2_a = 0;  ///< |a| and |a - b| of all its tensors as one vector
  double l2_diff = 0;
  std::uint64_t layers = 1;  ///< several where they are folded: numbers in the name are '#' then

  /// None when A is all zero.
  [[nodiscard]] std::optional<double> rel_l2() const;
};

struct LayerChoice {
  int depth = 0;  ///< so many parts of the names at most; 0: all but the last
  bool all = false;
  bool fold = false;
  std::string_view order = "file";  ///< as sort_diff()
};

/// The report was made with DiffOptions::lengths.
[[nodiscard]] std::vector<LayerDiff> diff_layers(const std::vector<ballast::TensorDiff>& tensors,
                                                 const LayerChoice& choice);

}  // namespace tool
