// SPDX-License-Identifier: Apache-2.0
// expect: wrap what holds no parameters in ballast::Skip
#include <mutex>

#include "ballast/module.h"
#include "ballast/nn.h"

struct Model {
  ballast::Tensor weight;
  std::mutex lock;
};

void walk(const Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
