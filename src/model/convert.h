// SPDX-License-Identifier: Apache-2.0
// The dtype policy of a load: what a tensor becomes, computed once for tied tensors, with the values counted
// that did not survive.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ballast/load.h"
#include "ballast/tensor.h"
#include "checkpoint/pattern.h"
#include "tensor/cast_loss.h"

namespace ballast {

/// Which tensors of a model a narrower dtype leaves as they are. A batch or instance norm counts as one with
/// statistics where it has them: without, apply_steps(), which sees names alone, cannot tell it from other
/// norms.
class KeptWide {
 public:
  KeptWide(const Slots& slots, const ModelCast& cast);

  [[nodiscard]] bool has(const Slot& slot) const;

 private:
  std::vector<LayerKind> layers_;
  std::set<std::pair<std::string, std::uint32_t>> with_statistics_;  // layers, by path and alternative
  std::optional<KeyFilter> names_;
};

class Converter {
 public:
  Converter(const Slots& slots, const ModelCast& cast) : precision_(cast.dtype), kept_(slots, cast) {}

  struct Result {
    Tensor tensor;
    CastLoss loss = {};
  };

  [[nodiscard]] Result convert(const Tensor& tensor, const Slot& slot);

 private:
  [[nodiscard]] Result cast_once(const Tensor& tensor, DType dtype);
  [[nodiscard]] DType target(const Tensor& tensor, const Slot& slot) const;

  Precision precision_;
  KeptWide kept_;
  std::unordered_map<const Storage*, std::vector<std::pair<Tensor, Result>>> done_;
};

}  // namespace ballast
