// SPDX-License-Identifier: Apache-2.0
// Batch norms folded into the layers before them: y = (w x + b - mean) / sqrt(var + eps) * gamma + beta is
// again a w x + b. The last step before a model is used; the norms cost nothing afterwards.
//
// Throws: fuse() with an input Errc::invalid_argument when the model gives other results than before, and
// what forward() throws; the model is as it was then. Tensors without data are not folded. Nobody else may
// use the model meanwhile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ballast/module.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

/// A norm that fuse() folded into a layer.
struct Folded {
  std::string layer;  ///< path of the convolution or Linear
  std::string norm;   ///< path of the norm
};

namespace detail {

class Folding {
 public:
  explicit Folding(const Slots& slots);
  /// Folds; once more, and all is as before.
  void swap() noexcept;

  std::vector<Folded> pairs;

 private:
  struct Changes;
  std::shared_ptr<Changes> changes_;
};

/// Errc::invalid_argument when the model gives other results than before.
void require_same(const Tensor& before, const Tensor& after);

}  // namespace detail

/// Folds every BatchNorm into the convolution, transposed convolution or Linear that is declared right before
/// it in the same struct or Sequential and has as many outputs. That must be the order they are called in:
/// hand over an input (below) to have it checked. Convolutions without bias get one. Returns what was folded.
/// A fused model can be saved; to load other weights, start from a new one.
template <Module Model>
std::vector<Folded> fuse(Model& model) {
  const Slots slots = detail::collect_slots(model, detail::Collector::Alternatives::held_only);
  detail::Folding folding(slots);
  folding.swap();
  slots.name_layers();
  return folding.pairs;
}

/// The same for a model with `Tensor forward(input)`; when its result for `input` is another afterwards
/// (Errc::invalid_argument), the model is as before.
template <Module Model, class Input>
std::vector<Folded> fuse(Model& model, const Input& input) {
  const Tensor before = model.forward(input);
  const Slots slots = detail::collect_slots(model, detail::Collector::Alternatives::held_only);
  detail::Folding folding(slots);
  folding.swap();
  try {
    detail::require_same(before, model.forward(input));
  } catch (...) {
    folding.swap();
    throw;
  }
  slots.name_layers();
  return folding.pairs;
}

}  // namespace ballast

#pragma GCC visibility pop
