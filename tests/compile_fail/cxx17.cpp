// SPDX-License-Identifier: Apache-2.0
// expect: compile with -std=c..20
// flags: -std=c++17
#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {};

void walk(Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
