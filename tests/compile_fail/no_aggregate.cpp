// SPDX-License-Identifier: Apache-2.0
// expect: list the fields of a class of your own with BALLAST_FIELDS
#include "ballast/module.h"
#include "ballast/nn.h"

class Inner {
 public:
  explicit Inner(int size) : weight(ballast::DType::f32, {size}) {}

 private:
  ballast::Tensor weight;
};

struct Model {
  Inner inner{3};
};

void walk(const Model& model) {
  ballast::for_each_tensor(model, [](std::string_view, const ballast::Tensor&, ballast::LayerKind) {});
}
