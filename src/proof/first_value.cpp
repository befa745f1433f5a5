// SPDX-License-Identifier: Apache-2.0
#include "proof/first_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "tensor/elements.h"

namespace ballast {
namespace {

constexpr std::size_t kAtOnce = 1024;
constexpr std::uint64_t kRead = 64 * kAtOnce;

template <class Wanted>
std::optional<std::uint64_t> first_where(const Tensor& tensor, const Wanted& wanted) {
  const std::uint64_t count = values_in(tensor);
  ElementReader reader(tensor);
  std::array<double, kAtOnce> values{};
  for (std::uint64_t done = 0; done < count; done += kRead) {
    const std::uint64_t in_reach = std::min(kRead, count - done);
    reader.read(done, in_reach);
    for (std::uint64_t at = 0; at < in_reach; at += kAtOnce) {
      const auto some =
          std::span(values).first(static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, in_reach - at)));
      reader.cast(at, some);
      const auto found = std::find_if(some.begin(), some.end(), wanted);
      if (found != some.end()) return done + at + static_cast<std::uint64_t>(found - some.begin());
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> first_nan(const Tensor& tensor) {
  return first_where(tensor, [](double value) { return std::isnan(value); });
}

std::optional<std::uint64_t> first_inf(const Tensor& tensor) {
  return first_where(tensor, [](double value) { return std::isinf(value); });
}

}  // namespace ballast
