// SPDX-License-Identifier: Apache-2.0
// All layers. Constructing one costs nothing: its tensors have shapes and no bytes until something is loaded
// into them. forward() computes as PyTorch does in eval mode, and layer(x) is layer.forward(x). A model of
// your own is called like that when it has the same line:
//   auto operator()(const auto&... args) const { return forward(args...); }
//
// Throws: constructors Errc::size_overflow for parameters with a size below 0 or beyond 64 bits,
// invalid_argument for groups, heads and numbers of layers that make none, and options of another layer; all
// other numbers (strides, kernels of pools, …) are looked at by forward(). forward() what its operations
// throw (ops.h: shape_mismatch, bad_dtype, invalid_argument for a layer that has no weights yet, …) with the
// layer's path and type in where(). Owns: a layer its tensors, which are shapes until something is loaded;
// copies of a layer share their bytes. Threads: forward() of one layer from several at once, while nobody
// changes it; only a KVCache, and a generator of random numbers, belong to one. Costs: constructing takes no
// memory; the first forward() may order weights for the processor, in memory of their own, and the next ones
// of those shapes reuse that. The layers, by the part of detail/nn/ they are declared in:
//   linear.h, embedding.h  Linear, Bilinear, Embedding, EmbeddingBag
//   conv.h                 Conv1d … 3d, ConvTranspose1d … 3d
//   norm.h                 BatchNorm, LayerNorm, GroupNorm, InstanceNorm, RMSNorm, LocalResponseNorm
//   activation.h           ReLU, GELU, SiLU, PReLU, GLU, Softmax, …; dropout.h
//   pool.h                 MaxPool, MaxUnpool, AvgPool, LPPool, Adaptive…Pool, Flatten, Upsample
//   reshape.h              ReflectionPad, ZeroPad, …, PixelShuffle, Unfold, Fold
//   rnn.h                  LSTM, GRU, RNN and their cells
//   attention.h            MultiheadAttention, Transformer, its encoder and decoder, RotaryEmbedding, KVCache
//   loss.h                 CrossEntropyLoss, MSELoss, …, for evaluation
//   sequential.h           Sequential, repeat<Layer>(n)
//   fuse.h                 batch norms folded into the layers before them
#pragma once

#include "ballast/detail/nn/activation.h"
#include "ballast/detail/nn/attention.h"
#include "ballast/detail/nn/conv.h"
#include "ballast/detail/nn/dropout.h"
#include "ballast/detail/nn/embedding.h"
#include "ballast/detail/nn/fuse.h"
#include "ballast/detail/nn/linear.h"
#include "ballast/detail/nn/loss.h"
#include "ballast/detail/nn/norm.h"
#include "ballast/detail/nn/place.h"
#include "ballast/detail/nn/pool.h"
#include "ballast/detail/nn/reshape.h"
#include "ballast/detail/nn/rnn.h"
#include "ballast/detail/nn/sequential.h"
#include "ballast/detail/nn/size.h"
