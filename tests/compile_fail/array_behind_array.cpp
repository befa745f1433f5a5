// SPDX-License-Identifier: Apache-2.0
// expect: is a C array: use std::array
// names: lengths
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  ballast::Tensor first, second;
  int lengths[2][4];
  ballast::nn::Linear fc{2, 2};
  ballast::Tensor heads[3];
};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
