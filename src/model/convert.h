// SPDX-License-Identifier: Apache-2.0
// The dtype policy of a load: what a tensor becomes, computed once for tied tensors, with the values counted
// that did not survive.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "ballast/slots.h"
#include "ballast/steps.h"
#include "ballast/tensor.h"
#include "tensor/cast_loss.h"

namespace ballast {

/// Whether half or bf16 leaves this tensor of such a layer as it is.
[[nodiscard]] bool stays_wide(DType from, DType to, LayerKind kind, const std::vector<LayerKind>& keep_dtype);

class Converter {
 public:
  Converter(Precision precision, const std::vector<LayerKind>& keep_dtype)
      : precision_(precision), keep_dtype_(keep_dtype) {}

  struct Result {
    Tensor tensor;
    CastLoss loss = {};
  };

  [[nodiscard]] Result convert(const Tensor& tensor, const Slot& slot);

 private:
  [[nodiscard]] Result cast_once(const Tensor& tensor, DType dtype);
  [[nodiscard]] DType target(const Tensor& tensor, const Slot& slot) const;

  Precision precision_;
  const std::vector<LayerKind>& keep_dtype_;
  std::unordered_map<const Storage*, std::vector<std::pair<Tensor, Result>>> done_;
};

}  // namespace ballast
