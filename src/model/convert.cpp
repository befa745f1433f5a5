// SPDX-License-Identifier: Apache-2.0
#include "model/convert.h"

#include <algorithm>
#include <numeric>

#include "checkpoint/steps.h"

namespace ballast {
namespace {

// The order of dimensions in which the elements lie one after another in memory, if there is one.
std::vector<std::int64_t> memory_order(const Tensor& tensor) {
  std::vector<std::int64_t> order(tensor.rank());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return tensor.strides()[static_cast<std::size_t>(a)] > tensor.strides()[static_cast<std::size_t>(b)];
  });
  return order;
}

std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return result;
}

}  // namespace

KeptWide::KeptWide(const Slots& slots, const ModelCast& cast) : layers_(cast.keep_layers) {
  if (!cast.keep_dtype.empty()) names_.emplace(cast.keep_dtype, std::vector<std::string>{});
  if (!cast.keep_statistics) return;
  for (const Slot& slot : slots.slots) {
    const bool is_norm = slot.kind == LayerKind::batch_norm || slot.kind == LayerKind::instance_norm;
    if (is_norm && slot.field() == "running_var") with_statistics_.emplace(slot.layer(), slot.alternative);
  }
}

bool KeptWide::has(const Slot& slot) const {
  return std::find(layers_.begin(), layers_.end(), slot.kind) != layers_.end() ||
         with_statistics_.contains({std::string(slot.layer()), slot.alternative}) ||
         (names_ && names_->passes(slot.path));
}

DType Converter::target(const Tensor& tensor, const Slot& slot) const {
  const DType from = tensor.dtype();
  if (precision_ == Precision::keep || !is_real(from)) return from;
  if (precision_ == Precision::as_model) {
    // What a counter or an index holds is exact, and stays so.
    const DType wanted = slot.tensor->defined() ? slot.tensor->dtype() : from;
    return is_floating(from) || info(wanted).bits >= info(from).bits ? wanted : from;
  }
  if (!is_floating(from)) return from;
  const DType to = target_dtype(precision_);
  return is_narrower(from, to) && kept_.has(slot) ? from : to;
}

Converter::Result Converter::convert(const Tensor& tensor, const Slot& slot) {
  const DType dtype = target(tensor, slot);
  if (dtype == tensor.dtype()) return {tensor};
  // A transposed tensor is cast as it lies in memory: that is faster, and a tensor and its transpose stay
  // tied.
  const std::vector<std::int64_t> order = memory_order(tensor);
  const Tensor in_memory = tensor.permute(order);
  if (!in_memory.is_contiguous()) return cast_once(tensor, dtype);
  Result result = cast_once(in_memory, dtype);
  result.tensor = result.tensor.permute(inverse(order));
  return result;
}

Converter::Result Converter::cast_once(const Tensor& tensor, DType dtype) {
  auto& earlier = done_[tensor.storage().get()];
  for (const auto& [from, result] : earlier) {
    if (from.same_view(tensor) && result.tensor.dtype() == dtype) return result;
  }
  Result result{tensor.to(dtype)};
  // Into a wider dtype every value goes as it is.
  if (is_floating(dtype) && info(dtype).bits <= info(tensor.dtype()).bits)
    result.loss = cast_loss(tensor, result.tensor);
  earlier.emplace_back(tensor, std::move(result));
  return earlier.back().second;
}

}  // namespace ballast
