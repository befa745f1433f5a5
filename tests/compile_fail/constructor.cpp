// SPDX-License-Identifier: Apache-2.0
// expect: a constructor, a private or a virtual member.*BALLAST_FIELDS
// names: Model
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  explicit Model(int size) : fc(size, size) {}

  ballast::nn::Linear fc;
};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
