// SPDX-License-Identifier: Apache-2.0
// expect: a member of this struct cannot be found.*BALLAST_FIELDS
// names: Model
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  ballast::Tensor& weight;
};

void walk(const Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
