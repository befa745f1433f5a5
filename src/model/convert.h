// SPDX-License-Identifier: Apache-2.0
// The dtype policy of a load: what a tensor becomes, computed once for tied tensors, with the values counted
// that did not survive.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ballast/slots.h"
#include "ballast/steps.h"
#include "ballast/tensor.h"
#include "tensor/cast_loss.h"

namespace ballast {

/// Whether half or bf16 leaves a tensor of a model as it is. A batch or instance norm counts as one where it
/// has running statistics: without them convert(), which sees names alone, cannot tell it from other norms.
class KeptWide {
 public:
  KeptWide(const Slots& slots, std::vector<LayerKind> keep_dtype);

  [[nodiscard]] bool in_layer_of(const Slot& slot) const;

 private:
  std::vector<LayerKind> kinds_;
  std::set<std::pair<std::string, std::uint32_t>> with_statistics_;  // layers, by path and alternative
};

[[nodiscard]] bool is_narrower(DType from, DType to);

class Converter {
 public:
  Converter(Precision precision, KeptWide kept) : precision_(precision), kept_(std::move(kept)) {}

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
