// SPDX-License-Identifier: Apache-2.0
// expect: bit-field
// names: Model
// several: clang
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  ballast::nn::Linear fc{2, 2};
  int flag : 3 = 1;
};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
