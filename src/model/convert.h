// SPDX-License-Identifier: Apache-2.0
// The dtype policy of a load: what a tensor becomes, computed once for tied tensors, with the values counted
// that did not survive.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ballast/steps.h"
#include "ballast/tensor.h"

namespace ballast {

/// Finite values of `tensor` that are infinite as `dtype`.
[[nodiscard]] std::uint64_t count_overflows(const Tensor& tensor, DType dtype);

class Converter {
 public:
  explicit Converter(Precision precision) : precision_(precision) {}

  struct Result {
    Tensor tensor;
    std::uint64_t overflows = 0;
  };

  /// `model` is the slot's tensor, for Precision::as_model.
  [[nodiscard]] Result convert(const Tensor& tensor, const Tensor& model);

 private:
  [[nodiscard]] Result cast_once(const Tensor& tensor, DType dtype);
  [[nodiscard]] DType target(const Tensor& tensor, const Tensor& model) const;

  Precision precision_;
  std::unordered_map<const Storage*, std::vector<std::pair<Tensor, Result>>> done_;
};

}  // namespace ballast
