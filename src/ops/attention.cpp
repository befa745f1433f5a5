// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of queries: the scores of a block stay in the cache, the whole matrix of them never
// exists.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ballast/detail/ops/matmul.h"
#include "ops/args.h"
#include "ops/batches.h"
#include "ops/gemm.h"
#include "ops/kernels.h"
#include "ops/onednn.h"
#include "ops/operations.h"
#include "ops/parallel.h"

namespace ballast {

using ops::data_of;
using ops::form;
using ops::Matrix;

namespace {

constexpr std::int64_t kQueriesAtOnce = 64;

struct Problem {
  Tensor query;
  Tensor key;
  Tensor value;
  Tensor mask;  // f32 to be added, [..., queries, keys] by broadcasting; undefined without
  float scale;
  bool causal;
  std::int64_t query_offset;
};

// What is added to the scores: 0 and minus infinity for a BOOL mask.
Tensor additive_mask(const Tensor& mask) {
  if (!mask.defined()) return mask;
  if (mask.dtype() != DType::boolean) return ops::floats("scaled_dot_product_attention", mask);
  Tensor added = ops::new_floats(mask.shape());
  if (mask.numel() == 0) return added;
  const Tensor allowed = mask.contiguous();
  const auto* from = reinterpret_cast<const std::uint8_t*>(allowed.data());
  float* to = data_of(added);
  for (std::int64_t i = 0; i < added.numel(); ++i)
    to[i] = from[i] != 0 ? 0 : -std::numeric_limits<float>::infinity();
  return added;
}

void mask_rows(const Problem& problem, const Matrix& mask, std::int64_t first, std::int64_t rows,
               std::int64_t keys, float* scores) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * keys;
    if (mask.data != nullptr) {
      const float* added = mask.data + (mask.rows == 1 ? 0 : (first + i) * mask.row_stride);
      for (std::int64_t j = 0; j < keys; ++j) row[j] += added[mask.columns == 1 ? 0 : j * mask.column_stride];
    }
    if (problem.causal) {
      const std::int64_t seen = std::clamp<std::int64_t>(first + i + problem.query_offset + 1, 0, keys);
      std::fill(row + seen, row + keys, -std::numeric_limits<float>::infinity());
    }
  }
}

void attend_block(const Problem& problem, const Matrix& q, const Matrix& k, const Matrix& v,
                  const Matrix& mask, std::int64_t first, std::int64_t rows, float* out) {
  // Keys that no query of the block may see need not be looked at; one is kept, so that a row without any
  // becomes NaN.
  std::int64_t keys = k.rows;
  if (problem.causal) keys = std::clamp<std::int64_t>(first + rows + problem.query_offset, 1, k.rows);
  auto* scores = static_cast<float*>(ops::scratch_of(static_cast<std::size_t>(rows * keys) * sizeof(float)));
  const Matrix block{q.data + first * q.row_stride, rows, q.columns, q.row_stride, q.column_stride};
  const Matrix turned{k.data, k.columns, keys, k.column_stride, k.row_stride};
  ops::gemm(block, turned, scores, keys, problem.scale);
  mask_rows(problem, mask, first, rows, keys, scores);
  for (std::int64_t i = 0; i < rows; ++i) ops::kernels().softmax(scores + i * keys, scores + i * keys, keys);
  const Matrix values{v.data, keys, v.columns, v.row_stride, v.column_stride};
  ops::gemm({scores, rows, keys, keys, 1}, values, out + first * v.columns, v.columns);
}

void check_shapes(const Tensor& query, const Tensor& key, const Tensor& value) {
  constexpr const char* kOp = "scaled_dot_product_attention";
  if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2) {
    fail(Errc::shape_mismatch, kOp, "query {}, key {}, value {}: each needs at least two dimensions",
         form(query), form(key), form(value));
  }
  if (query.shape()[query.rank() - 1] != key.shape()[key.rank() - 1]) {
    fail(Errc::shape_mismatch, kOp, "query {} and key {} differ in their features", form(query), form(key));
  }
  if (key.shape()[key.rank() - 2] != value.shape()[value.rank() - 2]) {
    fail(Errc::shape_mismatch, kOp, "key {} and value {} differ in their number", form(key), form(value));
  }
}

void attend(const Problem& problem, const Shape& batch, Tensor& out) {
  const Tensor& mask = problem.mask;
  const ops::Batches batches(batch, {&problem.query, &problem.key, &problem.value});
  const Shape mask_batch =
      mask.defined() ? ops::broadcast("scaled_dot_product_attention", batch, ops::batch_shape(mask)) : batch;
  if (!(mask_batch == batch))
    fail(Errc::shape_mismatch, "scaled_dot_product_attention", "mask {} has more batches than {}", form(mask),
         to_string(batch));
  const ops::Batches masks = mask.defined() ? ops::Batches(batch, {&mask}) : ops::Batches(batch, {});
  const std::int64_t queries = problem.query.shape()[problem.query.rank() - 2];
  const std::int64_t features = problem.value.shape()[problem.value.rank() - 1];
  const std::int64_t blocks = (queries - 1) / kQueriesAtOnce + 1;
  float* to = data_of(out);
  ops::parallel(batches.count() * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t b = i / blocks;
      const std::int64_t first = i % blocks * kQueriesAtOnce;
      const Matrix added =
          mask.defined() ? ops::matrix_of(mask, masks.offset(0, b)) : Matrix{nullptr, 0, 0, 0, 0};
      attend_block(problem, ops::matrix_of(problem.query, batches.offset(0, b)),
                   ops::matrix_of(problem.key, batches.offset(1, b)),
                   ops::matrix_of(problem.value, batches.offset(2, b)), added, first,
                   std::min(kQueriesAtOnce, queries - first), to + b * queries * features);
    }
  });
}

Tensor attention_cpu(const Operation& op, const Tensor& query, const Tensor& key, const Tensor& value,
                     const Tensor& given_mask, bool causal, std::int64_t query_offset, double scale) {
  const std::int64_t queries = query.shape()[query.rank() - 2];
  const std::int64_t keys = key.shape()[key.rank() - 2];
  Tensor mask = given_mask;
  if (mask.defined()) {
    while (mask.rank() < 2) mask = mask.unsqueeze(0);
    const Shape last =
        ops::broadcast(op.name, Shape{queries, keys}, ShapeView(mask.shape().data() + mask.rank() - 2, 2));
    if (!(last == Shape{queries, keys}))
      fail(Errc::shape_mismatch, op.name, "mask {} for {} queries and {} keys", form(mask), queries, keys);
  }
  const Problem problem{ops::floats(op.name, query),
                        ops::floats(op.name, key),
                        ops::floats(op.name, value),
                        additive_mask(mask),
                        static_cast<float>(scale),
                        causal,
                        query_offset};
  Shape shape =
      ops::broadcast(op.name, ops::broadcast(op.name, ops::batch_shape(query), ops::batch_shape(key)),
                     ops::batch_shape(value));
  const Shape batch = shape;
  shape.push_back(queries);
  shape.push_back(value.shape()[value.rank() - 1]);
  Tensor out = keys == 0 ? Tensor::zeros(DType::f32, shape) : ops::new_floats(shape);
  if (out.numel() > 0 && keys > 0) attend(problem, batch, out);
  return out.to(query.dtype());
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool,
                                   std::int64_t, double)>
    scaled_dot_product_attention = {about("scaled_dot_product_attention", {"query", "key", "value", "mask?"},
                                          {"causal", "query_offset", "scale"}, forms::attention),
                                    {attention_cpu}};

}  // namespace operations

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionArgs& args) {
  check_shapes(query, key, value);
  const double features = static_cast<double>(std::max<std::int64_t>(query.shape()[query.rank() - 1], 1));
  return run(operations::scaled_dot_product_attention, query, key, value, args.mask, args.causal,
             args.query_offset, args.scale.value_or(1 / std::sqrt(features)));
}

}  // namespace ballast
