// SPDX-License-Identifier: Apache-2.0
// Which layers a state dict is made of, without a model: told by the names and shapes of its tensors, for
// adapt(). Where two layers would look the same and differ in another world's layout, it says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ballast/adapter.h"

namespace ballast {

struct ToldLayer {
  std::string path;
  LayerKind kind = LayerKind::none;
};

struct ToldLayers {
  static constexpr std::size_t kNone = SIZE_MAX;

  std::vector<ToldLayer> layers;
  std::vector<std::size_t> layer_of;   // for each tensor a position in `layers`, or kNone
  std::vector<std::string> undecided;  // tensors, with what they may be
  std::vector<std::string> by_name;    // layers that nothing but their names tells, with what they are
  std::vector<std::string> unmatched;  // patterns of `layers` that matched none
  std::vector<std::string> turned;     // matrices that lie [in, out] in a PyTorch file, as GPT-2's do
};

/// `from` is pytorch, burn or none. `options.to` says what may stay open: what is the same in both worlds.
[[nodiscard]] ToldLayers tell_layers(const Checkpoint& in, Adapter from, const AdaptOptions& options);

}  // namespace ballast
