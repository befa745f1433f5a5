// SPDX-License-Identifier: Apache-2.0
// Batch norms taken into the convolution or linear map whose result they alone use.
#pragma once

#include "ballast/graph.h"

namespace ballast::onnx {

/// Weights and statistics must be the same whatever the sizes. Folded weights are constants with the names
/// the parameters had.
void fold_batch_norms(Graph& graph);

}  // namespace ballast::onnx
