// SPDX-License-Identifier: Apache-2.0
#include "ops/fold.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/args.h"
#include "ops/numbers.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast::ops {
namespace {

constexpr std::int64_t kPiece =
    65536;  // elements one thread folds at a time; the same for any number of threads
constexpr std::int64_t kColumns = 1024;  // totals that stay in the first cache while rows go over them
constexpr std::int64_t kEnoughPieces = 16;

// x as [outer, length, inner], to be folded along `length`.
struct FoldBlock {
  Tensor values;
  std::int64_t outer = 1;
  std::int64_t length = 1;
  std::int64_t inner = 1;
  Shape result;
};

FoldBlock block_along(const char* op, const Tensor& given, const Dims& dims, bool keepdim) {
  const std::vector<bool> reduced = reduced_axes(op, given, dims);
  const bool half = given.dtype() == DType::f16 || given.dtype() == DType::bf16;
  const Tensor x = half ? given.to(DType::f32) : given;
  FoldBlock block;
  Dims order;
  bool together = x.is_contiguous();
  bool begun = false;
  bool ended = false;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const std::int64_t size = x.shape()[i];
    if (!reduced[i]) order.push_back(static_cast<std::int64_t>(i));
    if (!reduced[i] || keepdim) block.result.push_back(reduced[i] ? 1 : size);
    if (reduced[i]) {
      block.length *= size;
      if (ended && size != 1) together = false;
      begun = begun || size != 1;
    } else {
      ended = ended || (begun && size != 1);
      (ended ? block.inner : block.outer) *= size;
    }
  }
  if (!together) {
    for (std::size_t i = 0; i < x.rank(); ++i)
      if (reduced[i]) order.push_back(static_cast<std::int64_t>(i));
    block.outer *= block.inner;
    block.inner = 1;
  }
  block.values = dense(together ? x : x.permute(order));
  return block;
}

template <class T, class Total>
struct FoldJob {
  const FoldBlock& block;
  const Fold<T, Total>& fold;
  const Fold<Total, Total>& join;
  Total first;  // what nothing folds to
  const T* from;
  Total* to;
};

// Rows, each to one total; long ones by pieces.
template <class T, class Total>
void fold_rows(const FoldJob<T, Total>& job) {
  const std::int64_t length = job.block.length;
  const std::int64_t pieces = (length - 1) / kPiece + 1;
  std::vector<Total> parts(pieces > 1 ? static_cast<std::size_t>(job.block.outer * pieces) : 0, job.first);
  Total* into = pieces > 1 ? parts.data() : job.to;
  parallel(job.block.outer * pieces, rows_per_thread(std::min(length, kPiece)),
           [&](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               const std::int64_t at = i % pieces * kPiece;
               job.fold.along(job.from + i / pieces * length + at, std::min(kPiece, length - at), into + i);
             }
           });
  for (std::int64_t i = 0; pieces > 1 && i < job.block.outer; ++i)
    job.join.along(into + i * pieces, pieces, job.to + i);
}

// Rows of totals that whole rows are taken into; by pieces of rows where there are few totals.
template <class T, class Total>
void fold_columns(const FoldJob<T, Total>& job) {
  const auto& [values, outer, length, inner, result] = job.block;
  const std::int64_t width = std::min(inner, kColumns);
  const std::int64_t strips = (inner - 1) / width + 1;
  const std::int64_t rows = outer * strips >= kEnoughPieces ? length : std::min(length, kPiece / width + 1);
  const std::int64_t pieces = (length - 1) / rows + 1;
  const std::int64_t totals = outer * inner;
  std::vector<Total> parts(pieces > 1 ? static_cast<std::size_t>(totals * pieces) : 0, job.first);
  Total* into = pieces > 1 ? parts.data() : job.to;
  const std::int64_t grain = kPiece / (rows * width) + 1;
  parallel(pieces * outer * strips, grain,
           [&, outer = outer, length = length, inner = inner](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               const std::int64_t piece = i / strips / outer;
               const std::int64_t o = i / strips % outer;
               const std::int64_t column = i % strips * width;
               const std::int64_t count = std::min(width, inner - column);
               Total* strip = into + piece * totals + o * inner + column;
               for (std::int64_t row = piece * rows; row < std::min(length, (piece + 1) * rows); ++row)
                 job.fold.each(job.from + (o * length + row) * inner + column, count, strip);
             }
           });
  for (std::int64_t piece = 0; pieces > 1 && piece < pieces; ++piece)
    job.join.each(into + piece * totals, totals, job.to);
}

template <class T, class Total>
Tensor run_fold(const FoldBlock& block, DType dtype, const Fold<T, Total>& fold,
                const Fold<Total, Total>& join, Total first) {
  Tensor out = new_tensor(dtype, block.result);
  if (out.numel() == 0) return out;
  auto* to = reinterpret_cast<Total*>(out.mutable_data());
  std::fill_n(to, out.numel(), first);
  if (block.length == 0) return out;
  const FoldJob<T, Total> job{block, fold, join, first, reinterpret_cast<const T*>(block.values.data()), to};
  block.inner == 1 ? fold_rows(job) : fold_columns(job);
  return out;
}

template <class T>
const FoldKernels<TotalOf<T>>& folds_of_totals() {
  if constexpr (std::is_floating_point_v<T>)
    return kernels().f64.folds;
  else
    return kernels().i64.folds;
}

template <class T>
Tensor folded_as(Folding which, const FoldBlock& block, const FoldKernels<T>& folds) {
  using Limits = std::numeric_limits<T>;
  constexpr T kLowest = std::is_floating_point_v<T> ? -Limits::infinity() : Limits::lowest();
  constexpr T kHighest = std::is_floating_point_v<T> ? Limits::infinity() : Limits::max();
  const DType total = std::is_floating_point_v<T> ? DType::f64 : DType::i64;
  switch (which) {
    case Folding::sum:
      return run_fold<T, TotalOf<T>>(block, total, folds.sum, folds_of_totals<T>().sum, 0);
    case Folding::prod:
      return run_fold<T, TotalOf<T>>(block, total, folds.prod, folds_of_totals<T>().prod, 1);
    case Folding::max:
      return run_fold<T, T>(block, block.values.dtype(), folds.max, folds.max, kLowest);
    case Folding::min:
      break;
  }
  return run_fold<T, T>(block, block.values.dtype(), folds.min, folds.min,
                        block.values.dtype() == DType::boolean ? T{1} : kHighest);
}

}  // namespace

Tensor folded(const char* op, Folding which, const Tensor& x, const Dims& dims, bool keepdim) {
  const FoldBlock block = block_along(op, x, dims, keepdim);
  if (block.values.dtype() == DType::f32) return folded_as(which, block, kernels().f32);
  return with_numbers(block.values.dtype(),
                      [&](const auto& table) { return folded_as(which, block, table.folds); });
}

}  // namespace ballast::ops
