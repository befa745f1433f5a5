// SPDX-License-Identifier: Apache-2.0
#include "model/convert.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/thread_pool.h"
#include "checkpoint/steps.h"
#include "tensor/cast.h"
#include "tensor/copy.h"

namespace ballast {
namespace {

// Half-way between the largest finite value and the next power of two: from here on rounding to nearest gives
// infinity.
std::optional<double> first_infinite(DType from, DType to) {
  const bool wide = from == DType::f64;
  if (to == DType::f16 && (wide || from == DType::f32 || from == DType::bf16)) return 0x1.FFEp15;
  if (to == DType::bf16 && (wide || from == DType::f32)) return 0x1.FFp127;
  if (to == DType::f32 && wide) return 0x1.FFFFFFp127;
  return std::nullopt;
}

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

std::uint64_t count_overflows(const Tensor& tensor, DType dtype) {
  const auto limit = first_infinite(tensor.dtype(), dtype);
  if (!limit || !tensor.has_data() || tensor.numel() == 0) return 0;
  constexpr std::uint64_t kBlock = 1U << 14U;
  std::atomic<std::uint64_t> total = 0;
  parallel_for(static_cast<std::uint64_t>(tensor.numel()), kBlock * 4,
               [&](std::uint64_t begin, std::uint64_t end) {
                 std::vector<std::byte> raw(kBlock * 8);
                 std::vector<double> values(kBlock);
                 std::uint64_t found = 0;
                 for (std::uint64_t first = begin; first < end; first += kBlock) {
                   const std::uint64_t count = std::min(kBlock, end - first);
                   const std::uint64_t size = info(tensor.dtype()).bits / 8U;
                   tensor.read(first * size, std::span(raw).first(static_cast<std::size_t>(count * size)));
                   cast_elements(tensor.dtype(), raw.data(), DType::f64,
                                 reinterpret_cast<std::byte*>(values.data()), count);
                   for (std::uint64_t i = 0; i < count; ++i) {
                     const double value = std::abs(values[static_cast<std::size_t>(i)]);
                     found += value >= *limit && !std::isinf(value) ? 1U : 0U;
                   }
                 }
                 total += found;
               });
  return total;
}

DType Converter::target(const Tensor& tensor, const Tensor& model) const {
  if (precision_ == Precision::keep || !is_real(tensor.dtype())) return tensor.dtype();
  if (precision_ == Precision::as_model) return model.defined() ? model.dtype() : tensor.dtype();
  return is_floating(tensor.dtype()) ? dtype_of_precision(precision_) : tensor.dtype();
}

Converter::Result Converter::convert(const Tensor& tensor, const Tensor& model) {
  const DType dtype = target(tensor, model);
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
  earlier.emplace_back(tensor, Result{tensor.to(dtype), count_overflows(tensor, dtype)});
  return earlier.back().second;
}

}  // namespace ballast
