// SPDX-License-Identifier: Apache-2.0
#include "model/weight_norm.h"

#include <cmath>
#include <cstring>

#include "base/fail.h"

namespace ballast {
namespace {

// v seen as [outer, count, inner], one g for each of `count`.
struct NormExtent {
  std::size_t outer = 1;
  std::size_t count = 1;
  std::size_t inner = 1;
};

NormExtent extent_of(const Tensor& g, const Tensor& v) {
  if (g.numel() == 1) return {1, 1, static_cast<std::size_t>(v.numel())};
  NormExtent extent;
  bool seen = false;
  bool fits = g.rank() == v.rank();
  for (std::size_t i = 0; fits && i < v.rank(); ++i) {
    const auto size = static_cast<std::size_t>(v.shape()[i]);
    if (g.shape()[i] != 1) {
      fits = !seen && g.shape()[i] == v.shape()[i];
      extent.count = size;
      seen = true;
    } else {
      (seen ? extent.inner : extent.outer) *= size;
    }
  }
  if (!fits)
    fail(Errc::shape_mismatch, "weight_norm", "lengths {} do not belong to directions {}",
         to_string(g.shape()), to_string(v.shape()));
  return extent;
}

void compute(const Tensor& g, const Tensor& v, const NormExtent& extent, std::span<std::byte> out) {
  const Tensor lengths = g.to(DType::f64).contiguous();
  Tensor values = v.to(DType::f64).clone();
  const auto length = lengths.span<double>();
  const auto value = values.mutable_span<double>();
  const auto for_each = [&](std::size_t k, auto&& f) {
    for (std::size_t o = 0; o < extent.outer; ++o) {
      double* row = value.data() + (o * extent.count + k) * extent.inner;
      for (std::size_t i = 0; i < extent.inner; ++i) f(row[i]);
    }
  };
  for (std::size_t k = 0; k < extent.count; ++k) {
    double squares = 0;
    for_each(k, [&](double x) { squares += x * x; });
    const double scale = length[k] / std::sqrt(squares);
    for_each(k, [&](double& x) { x *= scale; });
  }
  const Tensor result = values.to(v.dtype());
  std::memcpy(out.data(), result.data(), out.size());
}

}  // namespace

Tensor weight_norm(const Tensor& g, const Tensor& v) {
  if (!is_floating(g.dtype()) || !is_floating(v.dtype()))
    fail(Errc::bad_dtype, "weight_norm", "lengths and directions must be floating-point");
  const NormExtent extent = extent_of(g, v);
  Tensor result(v.dtype(), v.shape());
  if (!g.has_data() || !v.has_data()) return result;
  const auto storage = Storage::deferred(
      result.size_bytes(), [g, v, extent](std::span<std::byte> out) { compute(g, v, extent, out); },
      {g.storage(), v.storage()});
  return Tensor::contiguous_view(v.dtype(), v.shape(), storage);
}

}  // namespace ballast
