// SPDX-License-Identifier: Apache-2.0
// Checkpoints made by hand, for tests of loading.
#pragma once

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ballast/load.h"
#include "ballast/nn.h"

namespace ballast::testing_kit {

/// first, first + 1, …
inline Tensor counting(Shape shape, float first = 0) {
  std::vector<float> values(static_cast<std::size_t>(*try_numel(shape)));
  std::iota(values.begin(), values.end(), first);
  return Tensor::from(std::span<const float>(values), std::move(shape));
}

/// Tensors of these shapes; no two have a value in common.
inline Checkpoint checkpoint(const std::vector<std::pair<std::string, Shape>>& tensors) {
  Checkpoint result;
  result.path = "test.pt";
  float first = 1;
  for (const auto& [name, shape] : tensors) {
    const Tensor tensor = counting(shape, first);
    first += static_cast<float>(tensor.numel());
    result.add(name, tensor);
  }
  return result;
}

inline std::vector<float> floats(const Tensor& tensor) {
  const Tensor row_major = tensor.to(DType::f32).contiguous().clone();  // files have odd addresses
  const auto span = row_major.span<float>();
  return {span.begin(), span.end()};
}

inline bool same_values(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor left = a.contiguous();
  const Tensor right = b.contiguous();
  return a.numel() == 0 ||
         std::memcmp(left.data(), right.data(), static_cast<std::size_t>(a.size_bytes())) == 0;
}

/// The report of a load that must fail.
template <class Model>
LoadReport failed_load(Model& model, const Checkpoint& from, const LoadOptions& options = {}) {
  try {
    load(model, from, options);
  } catch (const LoadError& error) {
    EXPECT_EQ(error.code(), Errc::load_failed);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(error.report().text()));
    return error.report();
  }
  ADD_FAILURE() << "the load did not fail";
  return {};
}

inline std::vector<std::string> targets(const std::vector<LoadReport::Item>& items) {
  std::vector<std::string> found;
  for (const auto& item : items) found.push_back(item.target);
  return found;
}

inline std::vector<std::string> sources(const std::vector<LoadReport::Item>& items) {
  std::vector<std::string> found;
  for (const auto& item : items) found.push_back(item.source);
  return found;
}

}  // namespace ballast::testing_kit
