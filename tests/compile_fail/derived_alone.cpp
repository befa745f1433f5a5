// SPDX-License-Identifier: Apache-2.0
// expect: derives from another one.*BALLAST_FIELDS
// names: Model
#include "ballast/module.h"
#include "ballast/nn.h"

struct Base {
  ballast::Tensor a, b;
};

struct Model : Base {};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
