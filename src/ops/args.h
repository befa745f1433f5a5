// SPDX-License-Identifier: Apache-2.0
// What operations ask of their arguments, and how they refuse them. `op` is the operation's name in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ballast/detail/ops/operand.h"
#include "ballast/tensor.h"
#include "base/fail.h"
#include "ops/memory.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::ops {

/// "F32 [2, 3]"
[[nodiscard]] std::string form(const Tensor& tensor);

/// Dimension `dim` of `rank`, counted from the end when negative.
[[nodiscard]] std::size_t axis_of(const char* op, std::int64_t dim, const Tensor& tensor);

/// Sizes, strides and paddings beyond it are refused, so that no sum of products of two of them can leave 64
/// bits.
inline constexpr std::int64_t kMostSpatial = std::int64_t{1} << 30;

/// `given` for `count` spatial dimensions: one number for all or one each, each at least `least`.
[[nodiscard]] Dims spatial(const char* op, const char* what, const Dims& given, std::size_t count,
                           std::int64_t least);

/// a * b, refused when that does not fit.
[[nodiscard]] std::int64_t checked_size(const char* op, std::int64_t a, std::int64_t b);
/// Refuses images with a spatial dimension beyond kMostSpatial; `spatial` are the last dimensions.
void require_measurable(const char* op, const Tensor& x, std::size_t spatial);

/// The shape both broadcast to.
[[nodiscard]] Shape broadcast(const char* op, ShapeView a, ShapeView b);

/// PyTorch's result dtype.
[[nodiscard]] DType promoted(const char* op, const Operand& a, const Operand& b);
void require_defined(const char* op, const Tensor& x);
/// Refuses dtypes operations do not compute with (F8, complex, quantized, …).
void require_computable(const char* op, const Tensor& x);
/// The dtype values of `dtype` are computed in: F32, F64 or I64.
[[nodiscard]] DType compute_dtype(DType dtype) noexcept;

/// True when elements lie where their type can be read; a file may have them anywhere.
[[nodiscard]] bool is_aligned(const Tensor& x);
/// x itself, or where it cannot be read a row-major copy: ask the result for its strides, not x.
[[nodiscard]] Tensor aligned(const Tensor& x);
/// Row-major and aligned.
[[nodiscard]] Tensor dense(const Tensor& x);
/// F32 with the same values, strided; F16, BF16 and F32 only.
[[nodiscard]] Tensor floats(const char* op, const Tensor& x);
/// F32, row-major.
[[nodiscard]] Tensor dense_floats(const char* op, const Tensor& x);
/// The same of a weight that is about to be brought into another order: one whose values are still to be
/// computed (Storage::ready) is read, and they are not kept.
[[nodiscard]] Tensor dense_floats_once(const char* op, const Tensor& weight);
/// A list of I64 from I64, I32, I16, I8 or U8, row-major.
[[nodiscard]] Tensor dense_indices(const char* op, const Tensor& x);
/// An optional parameter of one dimension with `size` elements, as F32; undefined stays.
[[nodiscard]] Tensor parameter(const char* op, const char* what, const Tensor& x, std::int64_t size);

[[nodiscard]] inline const float* data_of(const Tensor& x) {
  return x.defined() ? reinterpret_cast<const float*>(x.data()) : nullptr;
}

[[nodiscard]] inline float* data_of(Tensor& x) {
  return reinterpret_cast<float*>(x.mutable_data());
}

/// Product of dims [begin, end).
[[nodiscard]] std::int64_t product(ShapeView shape, std::size_t begin, std::size_t end);

}  // namespace ballast::ops

#pragma GCC visibility pop
