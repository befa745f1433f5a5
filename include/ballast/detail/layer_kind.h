// SPDX-License-Identifier: Apache-2.0
// LayerKind: what a layer is to the adapters, that is, which convention its parameters follow in PyTorch,
// Burn, Flax or Keras. A layer says it with `static constexpr LayerKind kind = LayerKind::linear;`, and so
// can a layer of your own.
//
// Throws: nothing. Owns: names are constants. Threads: every function may be called from several at once.
// Costs: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What a layer is, as far as files lay it out differently. Layers of your own may declare one, too.
enum class LayerKind : std::uint8_t {
  none,  ///< a tensor outside any layer: taken as it is
  linear,
  bilinear,
  conv,  ///< 1-d, 2-d and 3-d alike; the weight's rank tells
  conv_transpose,
  batch_norm,
  layer_norm,
  group_norm,
  instance_norm,
  rms_norm,
  embedding,
  prelu,
  lstm,
  gru,
  rnn,
  multihead_attention,
};

/// How many there are.
inline constexpr std::size_t kLayerKindCount = 16;

/// "linear", "batch_norm": constants.
[[nodiscard]] std::string_view name(LayerKind kind) noexcept;
std::ostream& operator<<(std::ostream& out, LayerKind kind);

}  // namespace ballast

#pragma GCC visibility pop
