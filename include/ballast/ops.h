// SPDX-License-Identifier: Apache-2.0
// All operations on tensors: free functions that take tensors and give tensors, named as in PyTorch. Part of
// ballast::nn.
//
// Dtypes: results have the dtype PyTorch gives them (F16 + F32 is F32, I64 / I64 is F32, a number never
// widens a tensor of its kind). F16 and BF16 are computed in F32 and rounded once at the end. F64 is computed
// in F64 by elementwise operations, reductions, movement, softmax, products (but bilinear), convolutions and
// losses; other operations of layers (attention, pooling, norms, …) compute in F32 and refuse F64. BOOL, U8,
// I8, I16, I32, I64 where they make sense; docs/operations.md lists those compared with PyTorch. Shapes:
// NumPy's broadcasting. NaN and infinities flow as they do in PyTorch. There are no gradients.
//
// Throws: Errc::shape_mismatch for shapes that do not fit and dimensions that are not there; bad_dtype
// (complex, quantized and 8-bit floating dtypes are computed by none); invalid_argument for an operand that
// is undefined (shape_mismatch where its shape is looked at first) or has no data, and for numbers out of
// their range; offset_out_of_range for an index; size_overflow for results beyond all measure; unsupported
// for operands on two devices, or on one without a kernel; traced_value in a trace (graph.h) where values are
// read; and std::bad_alloc. where() names the operation, and its layer. Nothing is changed then. Owns:
// results are row-major, in memory of their own that may be written; a function that has nothing to change (a
// floor of integers, a reshape) gives a view of its operand. Operands are not kept. Threads: every function
// may be called from several at once, on the same tensors too; each works on ballast::thread_count() threads.
// Costs: computed at once; what a file or a cast left to be read is read. Memory for the result, and for
// copies of operands that are not dense or of F16 and BF16.
//
// By the part of detail/ops/ they are declared in:
//   create.h       zeros, ones, full, arange, …
//   elementwise.h  + - * /, comparisons, exp, sqrt, where, clamp, …
//   activation.h   relu, gelu, softmax, …
//   reduce.h       sum, mean, max, argmax, sort, topk, …
//   movement.h     concat, split, pad, gather, roll, …
//   matmul.h       matmul, linear, einsum, scaled_dot_product_attention, rotary_embedding
//   conv.h, pool.h, norm.h, resize.h, rnn.h    what layers are made of
//   loss.h         cross_entropy, mse_loss, …, for evaluation
//   boxes.h        nms, roi_align
//   fft.h          fft, rfft, stft and back
//   cache.h        what a caller keeps of one call for the next
#pragma once

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/boxes.h"
#include "ballast/detail/ops/cache.h"
#include "ballast/detail/ops/conv.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/fft.h"
#include "ballast/detail/ops/loss.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/norm.h"
#include "ballast/detail/ops/operand.h"
#include "ballast/detail/ops/pool.h"
#include "ballast/detail/ops/reduce.h"
#include "ballast/detail/ops/resize.h"
#include "ballast/detail/ops/rnn.h"
