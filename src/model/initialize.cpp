// SPDX-License-Identifier: Apache-2.0
#include "model/initialize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "ballast/error.h"
#include "ballast/module.h"
#include "base/fail.h"

namespace ballast {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): tiny, and good enough for starting weights.
class Random {
 public:
  Random(std::uint64_t seed, std::string_view path) : state_(0xCBF29CE484222325U ^ seed) {
    for (const char c : path) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3U;  // FNV-1a
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

  std::uint64_t state_;
};

double extent(const Shape& shape, std::size_t dim) {
  return static_cast<double>(shape[dim]);
}

// The weight of the layer a parameter belongs to: itself, or its companion of two or more dimensions.
const Shape& weight_shape(const Slot& slot, const Slots& all) {
  if (slot.tensor->rank() >= 2) return slot.tensor->shape();
  for (const Slot& other : all.slots) {
    if (other.alternative == slot.alternative && other.layer() == slot.layer() && other.tensor->rank() >= 2)
      return other.tensor->shape();
  }
  return slot.tensor->shape();
}

// PyTorch's "fan in": the inputs of one output; for Bilinear the first input's features, for a transposed
// convolution the outputs of one input.
double fan_in(const Slot& slot, const Slots& all) {
  const Shape& shape = weight_shape(slot, all);
  if (shape.size() < 2) return 1;
  if (slot.kind == LayerKind::linear) return extent(shape, 0);
  if (slot.kind == LayerKind::bilinear) return extent(shape, 1);
  double product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= extent(shape, i);
  return product;
}

// Of any parameter of a recurrent layer; weight_hh tells, or weight_hr where there is a projection.
double hidden_size(const Slot& slot, const Slots& all) {
  const double gates = slot.kind == LayerKind::lstm ? 4 : slot.kind == LayerKind::gru ? 3 : 1;
  for (const Slot& other : all.slots) {
    if (other.layer() == slot.layer() && other.field() == "weight_ih_l0" && other.tensor->rank() == 2)
      return extent(other.tensor->shape(), 1) / gates;
  }
  return extent(slot.tensor->shape(), slot.tensor->rank() - 1) / gates;
}

struct Distribution {
  enum class Kind : std::uint8_t { constant, uniform, normal } kind;
  double scale;  // the constant, the bound, the standard deviation

  double draw(Random& random) const {
    if (kind == Kind::constant) return scale;
    return kind == Kind::uniform ? (2 * random.uniform() - 1) * scale : random.normal() * scale;
  }
};

constexpr auto kConstant = Distribution::Kind::constant;
constexpr auto kUniform = Distribution::Kind::uniform;
constexpr auto kNormal = Distribution::Kind::normal;

// Glorot's bounds; PyTorch draws query, key and value as one matrix when they are of one size.
Distribution attention_value(const Slot& slot, const Slots& all) {
  const std::string_view field = slot.field();
  const Shape& shape = slot.tensor->shape();
  if (field.ends_with(".bias")) return {kConstant, 0};
  if (!field.ends_with(".weight")) return {kNormal, 1 / std::sqrt(extent(shape, shape.size() - 1))};
  const double in = extent(shape, 0);
  const double out = extent(shape, 1);
  if (field == "output.weight") return {kUniform, 1 / std::sqrt(in)};
  bool packed = true;
  for (const Slot& other : all.slots) {
    if (other.layer() == slot.layer() && other.field().ends_with(".weight") &&
        !(other.tensor->shape() == shape))
      packed = false;
  }
  return {kUniform, std::sqrt(6 / (in + (packed ? 3 : 1) * out))};
}

Distribution distribution_of(const Slot& slot, const Slots& all) {
  const std::string_view field = slot.field();
  switch (slot.kind) {
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::group_norm:
    case LayerKind::instance_norm:
    case LayerKind::rms_norm:
      return {kConstant, field == "gamma" || field == "running_var" ? 1.0 : 0.0};
    case LayerKind::prelu:
      return {kConstant, 0.25};
    case LayerKind::embedding:
      return {kNormal, 1};
    case LayerKind::lstm:
    case LayerKind::gru:
    case LayerKind::rnn:
      return {kUniform, 1 / std::sqrt(std::max(1.0, hidden_size(slot, all)))};
    case LayerKind::multihead_attention:
      return attention_value(slot, all);
    case LayerKind::linear:
    case LayerKind::bilinear:
    case LayerKind::conv:
    case LayerKind::conv_transpose:
      return {kUniform, 1 / std::sqrt(std::max(1.0, fan_in(slot, all)))};
    case LayerKind::none:
      break;
  }
  return {kConstant, 0};
}

}  // namespace

Tensor initial_value(const Slot& slot, const Slots& all, std::uint64_t seed) {
  const Tensor& like = *slot.tensor;
  if (!like.defined())
    fail(Errc::invalid_argument, quoted(slot.path), "cannot be initialised: it has no shape");
  const Distribution distribution = distribution_of(slot, all);
  Tensor values = Tensor::empty(DType::f64, like.shape());
  Random random(seed, slot.path);
  for (double& each : values.mutable_span<double>()) each = distribution.draw(random);
  Tensor value = values.to(like.dtype());
  if (slot.kind == LayerKind::prelu || slot.kind == LayerKind::embedding) {
    for (const Node& node : all.nodes) {
      if (node.adjust_initial && node.path == slot.layer()) node.adjust_initial(slot.field(), value);
    }
  }
  return value;
}

std::vector<std::string> detail::initialize(const Slots& slots, std::uint64_t seed) {
  std::vector<std::string> paths;
  std::map<Tensor*, Tensor> values;
  for (const Slot& slot : slots.slots) {
    if (slot.tensor->has_data() || values.contains(slot.tensor)) continue;
    values.emplace(slot.tensor, initial_value(slot, slots, seed));
    paths.push_back(slot.path);
  }
  for (auto& [tensor, value] : values) *tensor = std::move(value);
  slots.name_layers();
  return paths;
}

}  // namespace ballast
