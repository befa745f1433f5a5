// SPDX-License-Identifier: Apache-2.0
#include "model/initialize.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "ballast/display.h"
#include "base/fail.h"

namespace ballast {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): tiny, and good enough for starting weights.
class Random {
 public:
  explicit Random(std::string_view seed) {
    for (const char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3U;  // FNV-1a
  }

  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_ = 0xCBF29CE484222325U;
};

// The number of inputs of one output of the layer a parameter belongs to; its weight tells.
double fan_in(const Slot& slot, const Slots& all) {
  const Tensor* weight = slot.tensor;
  for (const Slot& other : all.slots) {
    if (weight->rank() < 2 && other.alternative == slot.alternative && other.layer() == slot.layer() &&
        other.tensor->rank() >= 2)
      weight = other.tensor;
  }
  const Shape& shape = weight->shape();
  if (shape.size() < 2) return 1;
  if (slot.kind == LayerKind::linear || slot.kind == LayerKind::multihead_attention)
    return static_cast<double>(shape[0]);
  double product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= static_cast<double>(shape[i]);
  return product;
}

double hidden_size(const Slot& slot) {
  const double gates = slot.kind == LayerKind::lstm ? 4 : slot.kind == LayerKind::gru ? 3 : 1;
  return std::max(1.0, static_cast<double>(slot.tensor->shape().back()) / gates);
}

// value(random) for each element.
template <class Value>
Tensor filled(const Tensor& like, std::string_view path, Value&& value) {
  Tensor values = Tensor::empty(DType::f64, like.shape());
  Random random(path);
  for (double& each : values.mutable_span<double>()) each = value(random);
  return values.to(like.dtype());
}

}  // namespace

Tensor initial_value(const Slot& slot, const Slots& all) {
  const Tensor& like = *slot.tensor;
  if (!like.defined())
    fail(Errc::invalid_argument, quoted(slot.path), "cannot be initialised: it has no shape");
  const auto constant = [&](double value) {
    return filled(like, slot.path, [value](Random&) { return value; });
  };
  const auto uniform = [&](double bound) {
    return filled(like, slot.path, [bound](Random& random) { return (2 * random.uniform() - 1) * bound; });
  };
  const std::string_view field = slot.field();
  switch (slot.kind) {
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::group_norm:
    case LayerKind::instance_norm:
    case LayerKind::rms_norm:
      return constant(field == "gamma" || field == "running_var" ? 1 : 0);
    case LayerKind::prelu:
      return constant(0.25);
    case LayerKind::embedding:
      return filled(like, slot.path, [](Random& random) { return random.normal(); });
    case LayerKind::lstm:
    case LayerKind::gru:
    case LayerKind::rnn:
      return uniform(1 / std::sqrt(hidden_size(slot)));
    case LayerKind::multihead_attention:
      if (like.rank() < 2) return constant(0);
      return uniform(1 / std::sqrt(fan_in(slot, all)));
    case LayerKind::linear:
    case LayerKind::bilinear:
    case LayerKind::conv:
    case LayerKind::conv_transpose:
      return uniform(1 / std::sqrt(fan_in(slot, all)));
    case LayerKind::none:
      break;
  }
  return constant(0);
}

}  // namespace ballast
