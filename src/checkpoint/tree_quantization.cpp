// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tree_quantization.h"

#include <algorithm>
#include <limits>

#include "ballast/quantized.h"
#include "checkpoint/steps.h"

namespace ballast {
namespace {

bool is_quantized_dtype(DType dtype) {
  return info(dtype).kind == DTypeKind::quantized;
}

bool has_quantized(const Checkpoint& checkpoint) {
  return checkpoint.tree && std::any_of(checkpoint.begin(), checkpoint.end(),
                                        [](const Entry& entry) { return is_quantized_dtype(entry.dtype); });
}

}  // namespace

TreeQuantization::TreeQuantization(const Checkpoint& checkpoint) {
  if (!has_quantized(checkpoint)) return;
  constexpr auto kAll = std::numeric_limits<std::size_t>::max();  // every container is entered once
  ValueWalk walk(*checkpoint.tree, {.steps = kAll, .depth = kAll});
  while (const auto step = walk.next()) {
    if (step->value.kind() != Kind::tensor) continue;
    TensorValue value = step->value.tensor_value();
    if (!value.quantization || !value.tensor.has_data()) continue;
    by_place_[{value.tensor.storage().get(), value.tensor.bit_offset()}].push_back(std::move(value));
  }
}

const TensorValue* TreeQuantization::find(const Tensor& tensor) const {
  if (!is_quantized_dtype(tensor.dtype()) || !tensor.has_data()) return nullptr;
  const auto here = by_place_.find({tensor.storage().get(), tensor.bit_offset()});
  if (here == by_place_.end()) return nullptr;
  const auto same = std::find_if(here->second.begin(), here->second.end(),
                                 [&](const TensorValue& value) { return value.tensor.same_view(tensor); });
  return same == here->second.end() ? nullptr : &*same;
}

Checkpoint with_numbers_of_tree(const Checkpoint& in) {
  if (!has_quantized(in)) return in;
  const TreeQuantization known(in);
  Checkpoint out = without_tensors(in);
  for (const Entry& entry : in) {
    const Tensor tensor = entry.tensor();
    const TensorValue* value = known.find(tensor);
    out.add(entry.name, value == nullptr ? tensor : dequantized(*value));
  }
  return out;
}

}  // namespace ballast
