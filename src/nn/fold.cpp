// SPDX-License-Identifier: Apache-2.0
#include "nn/fold.h"

#include "ballast/detail/ops/elementwise.h"

namespace ballast::nn {
namespace {

// `scale` [outputs] times the weight along its outputs.
Tensor scaled(const Tensor& given, const Tensor& scale, std::size_t output_dim, std::int64_t groups) {
  const Tensor weight = given.to(DType::f64);
  if (weight.rank() == 2)
    return mul(weight.t(), scale.unsqueeze(1)).t().to(DType::f32);  // [out, in] stays dense
  if (output_dim == 0) {
    Shape shape = Dims::filled(weight.rank(), 1);
    shape[0] = scale.numel();
    return mul(weight, scale.reshape(shape)).to(DType::f32);
  }
  // [in, out / groups, kernel…]: the inputs of group g make its outputs.
  Shape grouped = weight.shape();
  grouped[0] /= groups;
  grouped.insert(0, groups);
  Shape factors = Dims::filled(grouped.size(), 1);
  factors[0] = groups;
  factors[2] = scale.numel() / groups;
  return mul(weight.reshape(grouped), scale.reshape(factors)).reshape(weight.shape()).to(DType::f32);
}

}  // namespace

FoldedLayer fold_norm(const Tensor& weight, const Tensor& bias, const NormToFold& norm,
                      std::size_t output_dim, std::int64_t groups) {
  const auto wide = [](const Tensor& x) { return x.to(DType::f64); };
  Tensor scale = div(1.0, sqrt(add(wide(norm.variance), norm.eps)));
  if (norm.gamma.has_data()) scale = mul(scale, wide(norm.gamma));
  Tensor shift = neg(wide(norm.mean));
  if (bias.has_data()) shift = add(shift, wide(bias));
  shift = mul(shift, scale);
  if (norm.beta.has_data()) shift = add(shift, wide(norm.beta));
  return {scaled(weight, scale, output_dim, groups), shift.to(DType::f32)};
}

}  // namespace ballast::nn
