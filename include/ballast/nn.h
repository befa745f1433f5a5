// SPDX-License-Identifier: Apache-2.0
// All layers. Constructing one costs nothing: its tensors have shapes and no bytes until something is loaded
// into them. forward() computes as PyTorch does in eval mode, and layer(x) is layer.forward(x). A model of
// your own is called like that when it has the same line:
//   auto operator()(const auto&... args) const { return forward(args...); }
#pragma once

#include "ballast/nn/activation.h"
#include "ballast/nn/attention.h"
#include "ballast/nn/conv.h"
#include "ballast/nn/embedding.h"
#include "ballast/nn/fuse.h"
#include "ballast/nn/linear.h"
#include "ballast/nn/norm.h"
#include "ballast/nn/place.h"
#include "ballast/nn/pool.h"
#include "ballast/nn/rnn.h"
#include "ballast/nn/sequential.h"
#include "ballast/nn/size.h"
