// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/fuse.h"

#include <typeinfo>
#include <utility>

#include "ballast/detail/nn/conv.h"
#include "ballast/detail/nn/linear.h"
#include "ballast/detail/nn/norm.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/reduce.h"
#include "base/fail.h"
#include "nn/fold.h"
#include "tensor/resident.h"

namespace ballast::detail {
namespace {

// A layer that can take a norm in: its weight with the outputs as the given dimension, and groups of outputs.
struct Foldable {
  Tensor* weight = nullptr;
  Tensor* bias = nullptr;
  bool* has_bias = nullptr;
  std::int64_t outputs = 0;
  std::size_t output_dim = 0;
  std::int64_t groups = 1;  // of a transposed convolution, whose outputs are counted per group
};

template <class Layer>
bool is(const Node& node) {
  return *node.rtti == typeid(Layer);
}

template <class Layer>
Foldable conv(void* object, bool transposed) {
  auto& layer = *static_cast<Layer*>(object);
  return {&layer.weight,
          &layer.bias,
          &layer.options.bias,
          layer.out_channels,
          transposed ? std::size_t{1} : 0,
          transposed ? layer.options.groups : 1};
}

Foldable foldable(const Node& node) {
  if (is<nn::Conv1d>(node)) return conv<nn::Conv1d>(node.object, false);
  if (is<nn::Conv2d>(node)) return conv<nn::Conv2d>(node.object, false);
  if (is<nn::Conv3d>(node)) return conv<nn::Conv3d>(node.object, false);
  if (is<nn::ConvTranspose1d>(node)) return conv<nn::ConvTranspose1d>(node.object, true);
  if (is<nn::ConvTranspose2d>(node)) return conv<nn::ConvTranspose2d>(node.object, true);
  if (is<nn::ConvTranspose3d>(node)) return conv<nn::ConvTranspose3d>(node.object, true);
  if (!is<nn::Linear>(node)) return {};
  auto& layer = *static_cast<nn::Linear*>(node.object);
  return {&layer.weight, &layer.bias, &layer.options.bias, layer.out_features, 1, 1};
}

nn::BatchNorm* batch_norm(const Node& node) {
  if (is<nn::BatchNorm>(node)) return static_cast<nn::BatchNorm*>(node.object);
  if (is<nn::BatchNorm1d>(node)) return static_cast<nn::BatchNorm1d*>(node.object);
  if (is<nn::BatchNorm2d>(node)) return static_cast<nn::BatchNorm2d*>(node.object);
  if (is<nn::BatchNorm3d>(node)) return static_cast<nn::BatchNorm3d*>(node.object);
  return nullptr;
}

std::string_view parent(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

bool tied(const Slots& slots, const Tensor* weight) {
  for (const Slot& slot : slots.slots) {
    if (slot.tensor != weight && slot.tensor->has_data() && slot.tensor->storage() == weight->storage() &&
        slot.tensor->bit_offset() == weight->bit_offset())
      return true;
  }
  return false;
}

bool can_fold(const Slots& slots, const Foldable& layer, const nn::BatchNorm& norm) {
  return layer.outputs == norm.num_features && norm.options.track_running_stats && !norm.folded() &&
         layer.weight->has_data() && norm.running_var.has_data() && norm.running_mean.has_data() &&
         !tied(slots, layer.weight);
}

}  // namespace

struct Folding::Changes {
  template <class T>
  struct Change {
    T* target;
    T other;  // what is not in the model now
  };

  std::vector<Change<Tensor>> tensors;
  std::vector<Change<bool>> switches;
  std::vector<Change<std::shared_ptr<const Storage>>> marks;

  void fold(const Foldable& layer, nn::BatchNorm& norm) {
    const nn::FoldedLayer folded =
        nn::fold_norm(*layer.weight, *layer.bias,
                      {norm.running_mean, norm.running_var, norm.gamma, norm.beta, norm.options.eps},
                      layer.output_dim, layer.groups);
    give_back_pages(*layer.weight);
    put(*layer.weight, folded.weight);
    put(*layer.bias, folded.bias);
    switches.push_back({layer.has_bias, true});
    make_identity(norm);
  }

  void put(Tensor& target, Tensor value) { tensors.push_back({&target, std::move(value)}); }

  // So that a saved model still is what it was.
  void make_identity(nn::BatchNorm& norm) {
    const Shape shape{norm.num_features};
    const Tensor variance = full(shape, 1 - norm.options.eps);
    put(norm.running_mean, zeros(shape));
    put(norm.running_var, variance);
    if (norm.options.affine) put(norm.gamma, ones(shape));
    if (norm.options.affine) put(norm.beta, zeros(shape));
    marks.push_back({&norm.folded_into, variance.storage()});
  }
};

Folding::Folding(const Slots& slots) : changes_(std::make_shared<Changes>()) {
  for (std::size_t i = 0; i + 1 < slots.nodes.size(); ++i) {
    const Node& node = slots.nodes[i];
    const Node& next = slots.nodes[i + 1];
    const Foldable layer = foldable(node);
    nn::BatchNorm* norm = batch_norm(next);
    if (layer.weight == nullptr || norm == nullptr || parent(node.path) != parent(next.path) ||
        !can_fold(slots, layer, *norm))
      continue;
    changes_->fold(layer, *norm);
    pairs.push_back({node.path, next.path});
  }
}

void Folding::swap() noexcept {
  for (auto& each : changes_->tensors) std::swap(*each.target, each.other);
  for (auto& each : changes_->switches) std::swap(*each.target, each.other);
  for (auto& each : changes_->marks) std::swap(*each.target, each.other);
}

void require_same(const Tensor& before, const Tensor& after) {
  const double size = norm(before.to(DType::f64)).item();
  const double distance = norm(sub(before.to(DType::f64), after.to(DType::f64))).item();
  if (!(distance <= 1e-3 * size + 1e-12)) {
    fail(Errc::invalid_argument, "fuse",
         "the result moved by {:.3g} of its norm: a batch norm is not called right after the layer declared "
         "before it",
         distance / size);
  }
}

}  // namespace ballast::detail
