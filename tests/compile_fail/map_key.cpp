// SPDX-License-Identifier: Apache-2.0
// expect: key of a std::map in a model must be std::string
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  std::map<int, ballast::Tensor> heads;
};

void walk(const Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
