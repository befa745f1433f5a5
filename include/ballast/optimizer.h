// SPDX-License-Identifier: Apache-2.0
// The optimizer inside a training checkpoint, by parameter name. PyTorch saves it by number; the names come
// from the model beside it. Part of ballast::import.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/checkpoint.h"

namespace ballast {

struct ParameterState {
  std::string name;        ///< empty when the file does not hold the model
  std::int64_t index = 0;  ///< the file's number for it
  std::size_t group = 0;
  std::vector<std::pair<std::string, Value>>
      values;  ///< "exp_avg", "step", …; empty when it never had a gradient

  /// Errc::not_found when there is no such value.
  [[nodiscard]] const Value& value(std::string_view key) const;
};

struct OptimizerState {
  std::string path;    ///< where in the tree it was found
  std::string family;  ///< "adam", "sgd", "rmsprop", "adagrad" by what it keeps, "unknown" otherwise
  std::vector<std::vector<std::pair<std::string, Value>>> groups;  ///< hyper-parameters: lr, betas, …
  std::vector<ParameterState> parameters;                          ///< in the optimizer's order

  /// Errc::not_found with the nearest names.
  [[nodiscard]] const ParameterState& at(std::string_view name) const;
};

/// `path` is where the optimizer's state_dict() lies; found by itself when empty and there is one
/// (Errc::not_found, Errc::invalid_argument otherwise). Names come from the file's own list (`param_names`),
/// from a whole model, or from the state dict: in its order without batch-norm statistics, tied tensors once,
/// or split by weights and biases where there are two groups. Errc::shape_mismatch when the shapes of moments
/// do not fit.
[[nodiscard]] OptimizerState optimizer_state(const Checkpoint& checkpoint, std::string_view path = {});

}  // namespace ballast
