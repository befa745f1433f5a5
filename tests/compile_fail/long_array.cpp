// SPDX-License-Identifier: Apache-2.0
// expect: is a C array: use std::array
// names: Model
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  ballast::nn::Linear fc{2, 2};
  float scratch[200];
};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
