// SPDX-License-Identifier: Apache-2.0
// expect: is const, so nothing can be loaded into it
// names: scale
#include "ballast/module.h"
#include "ballast/nn.h"

struct Inner {
  const ballast::Tensor scale;
};

struct Model {
  ballast::nn::Linear fc{2, 2};
  Inner inner;
};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
