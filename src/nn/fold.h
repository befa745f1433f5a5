// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a batch norm taken into the layer before it: fuse() in a model, the ONNX export in a
// graph.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ballast/tensor.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::nn {

struct NormToFold {
  Tensor mean;
  Tensor variance;
  Tensor gamma;  ///< may be undefined, or have no data
  Tensor beta;
  double eps;
};

struct FoldedLayer {
  Tensor weight;
  Tensor bias;
};

/// `output_dim`: which dimension of the weight counts the outputs. Of a transposed convolution they are
/// counted per group.
[[nodiscard]] FoldedLayer fold_norm(const Tensor& weight, const Tensor& bias, const NormToFold& norm,
                                    std::size_t output_dim, std::int64_t groups);

}  // namespace ballast::nn

#pragma GCC visibility pop
