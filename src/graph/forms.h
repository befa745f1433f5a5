// SPDX-License-Identifier: Apache-2.0
// What an operation's results look like (dtype and shape), told from its operands without computing them: a
// trace asks for nothing else.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ballast/detail/attribute.h"
#include "ballast/tensor.h"

namespace ballast::graph {

using Forms = std::vector<Tensor>;  // without data

/// An operation as it is recorded; its operands' values are not looked at.
struct Asked {
  const char* op;
  std::span<const Tensor> inputs;
  const Attributes& attributes;

  [[nodiscard]] bool has(std::size_t i) const { return i < inputs.size() && inputs[i].defined(); }

  [[nodiscard]] const Shape& shape(std::size_t i) const { return inputs[i].shape(); }

  [[nodiscard]] DType dtype(std::size_t i) const { return inputs[i].dtype(); }

  [[nodiscard]] std::int64_t number(std::string_view name) const;
  [[nodiscard]] const Dims& list(std::string_view name) const;
  [[nodiscard]] const std::vector<double>& reals(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;
};

/// Nullopt where the values must be computed to know.
using FormsOf = std::optional<Forms> (*)(const Asked& asked);
using FormTable = std::map<std::string_view, FormsOf>;

// One for each file forms_*.cpp.
void add_layer_forms(FormTable& table);
void add_reduction_forms(FormTable& table);

/// The forms of the results. Refuses what the operation refuses for its operands' forms. Nullopt for views,
/// which cost nothing, and for what is not known here: those are run.
[[nodiscard]] std::optional<Forms> forms_of(const Asked& asked);

}  // namespace ballast::graph
