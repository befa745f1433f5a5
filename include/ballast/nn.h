// SPDX-License-Identifier: Apache-2.0
// All layers. Constructing one costs nothing: its tensors have shapes and no bytes until something is loaded
// into them. forward() computes as PyTorch does in eval mode, and layer(x) is layer.forward(x). A model of
// your own is called like that when it has the same line:
//   auto operator()(const auto&... args) const { return forward(args...); }
// The layers, by the part of detail/nn/ they are declared in:
//   linear.h, embedding.h  Linear, Bilinear, Embedding
//   conv.h                 Conv1d … 3d, ConvTranspose1d … 3d
//   norm.h                 BatchNorm, LayerNorm, GroupNorm, InstanceNorm, RMSNorm
//   activation.h           ReLU, GELU, SiLU, PReLU, Softmax, Dropout, …
//   pool.h                 MaxPool, AvgPool, Adaptive…Pool, Flatten, Upsample
//   rnn.h                  LSTM, GRU, RNN
//   attention.h            MultiheadAttention, TransformerEncoderLayer, TransformerDecoderLayer
//   sequential.h           Sequential, repeat<Layer>(n)
//   fuse.h                 batch norms folded into the layers before them
#pragma once

#include "ballast/detail/nn/activation.h"
#include "ballast/detail/nn/attention.h"
#include "ballast/detail/nn/conv.h"
#include "ballast/detail/nn/embedding.h"
#include "ballast/detail/nn/fuse.h"
#include "ballast/detail/nn/linear.h"
#include "ballast/detail/nn/norm.h"
#include "ballast/detail/nn/place.h"
#include "ballast/detail/nn/pool.h"
#include "ballast/detail/nn/rnn.h"
#include "ballast/detail/nn/sequential.h"
#include "ballast/detail/nn/size.h"
