// SPDX-License-Identifier: Apache-2.0
// The inner loops over f32 rows, compiled once for every instruction set (kernels_*.cpp) and chosen at run
// time. Everything here works on plain arrays on the calling thread; shapes, strides, dtypes and threads are
// the callers' business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensor/isa.h"

namespace ballast::ops {

/// One value from one value. p and q are the operation's numbers, where it has any.
enum class Unary : std::uint8_t {
  neg,
  abs,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  reciprocal,
  square,
  sin,
  cos,
  tan,
  erf,
  floor,
  ceil,
  round,
  trunc,
  sign,
  relu,
  gelu,
  gelu_tanh,
  silu,
  sigmoid,
  log_sigmoid,
  tanh,
  mish,
  softsign,
  hardswish,
  hardsigmoid,
  clamp,        ///< to [p, q]: relu6 and hardtanh too
  softplus,     ///< p: beta, q: threshold
  elu,          ///< p: alpha, q: scale (SELU's)
  leaky_relu,   ///< p: slope
  scale_shift,  ///< x * p + q
};
inline constexpr std::size_t kUnaryCount = static_cast<std::size_t>(Unary::scale_shift) + 1;

enum class Binary : std::uint8_t { add, sub, mul, div, pow, minimum, maximum, prelu };
inline constexpr std::size_t kBinaryCount = static_cast<std::size_t>(Binary::prelu) + 1;

enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor };
inline constexpr std::size_t kCompareCount = static_cast<std::size_t>(Compare::logical_xor) + 1;

/// What values of T add up to: integers in I64, where they go round, floats in F64, so that their rounding
/// does not grow with their number.
template <class T>
using TotalOf = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

/// A reduction that takes in one element after the other.
template <class T, class Total>
struct Fold {
  void (*along)(const T* in, std::int64_t n, Total* into);  ///< all of them into one
  void (*each)(const T* in, std::int64_t n, Total* into);   ///< each into its own
};

template <class T>
struct FoldKernels {
  Fold<T, TotalOf<T>> sum;
  Fold<T, TotalOf<T>> prod;
  Fold<T, T> max;  ///< NaN when there is one
  Fold<T, T> min;
};

/// The loops over another dtype. Operands as those of Kernels::binary; null where there is no such operation.
template <class T>
struct NumberKernels {
  void (*binary[kBinaryCount])(const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* out,
                               std::int64_t n);
  void (*compare[kCompareCount])(const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride,
                                 std::uint8_t* out, std::int64_t n);
  FoldKernels<T> folds;
};

/// Tiles of a product of matrices (ops/packed.h).
struct TileKernels {
  static constexpr std::size_t kMostRows = 12;
  std::int64_t rows;     ///< of the tallest tile
  std::int64_t columns;  ///< of every tile
  /// c [r, columns] = a b, or += where `add`, at of[r - 1]. a: k times `rows` values, of which r are used; b:
  /// k times `columns`.
  void (*of[kMostRows])(std::int64_t k, const float* a, const float* b, float* c, std::int64_t c_stride,
                        bool add);
};

/// How an image lies: floats from a row to the next, from a pixel, and from a vector of channels.
struct ImageSteps {
  std::int64_t row;
  std::int64_t pixel;
  std::int64_t vector;
};

/// What ends a convolution: a bias for each channel, or null, and the least and the largest result.
struct ResultLimits {
  const float* bias;
  float low;
  float high;
};

/// A convolution by patches of 4×4 pixels, each of which becomes 2×2 results (ops/winograd.h).
struct WinogradKernels {
  std::int64_t vector;  ///< channels
  /// `vectors` vectors of a patch as 16 values each, which lie `apart`.
  void (*in)(const float* from, ImageSteps steps, std::int64_t vectors, float* to, std::int64_t apart);
  void (*out)(const float* from, std::int64_t apart, std::int64_t vectors, ResultLimits limits, float* to,
              ImageSteps steps);
  /// c [r, two vectors] = a b at tile[r - 1], up to the rows of TileKernels; rows of a are `a_stride` apart.
  void (*tile[TileKernels::kMostRows])(std::int64_t k, const float* a, std::int64_t a_stride, const float* b,
                                       float* c, std::int64_t c_stride);
};

struct Kernels {
  void (*unary[kUnaryCount])(const float* in, float* out, std::int64_t n, float p, float q);
  /// Each operand has stride 0 (one value for the whole row) or 1. `out` may be `a` or `b`.
  void (*binary[kBinaryCount])(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                               float* out, std::int64_t n);
  void (*compare[kCompareCount])(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                                 std::uint8_t* out, std::int64_t n);

  double (*sum)(const float* in, std::int64_t n);
  double (*sum_squares)(const float* in, double mean, std::int64_t n);  ///< of the distances from `mean`
  float (*max)(const float* in, std::int64_t n);                        ///< NaN when there is one; n > 0
  float (*min)(const float* in, std::int64_t n);
  float (*dot)(const float* a, const float* b, std::int64_t n);
  /// out[j] = sum over i of a[i] * b[j * stride + i], for 4 rows of b at once: reads `a` once.
  void (*dot4)(const float* a, const float* b, std::int64_t stride, std::int64_t n, float* out);
  void (*axpy)(float scale, const float* in, float* out, std::int64_t n);  ///< out += scale * in

  void (*softmax)(const float* in, float* out, std::int64_t n);
  void (*log_softmax)(const float* in, float* out, std::int64_t n);
  /// out = (in - mean) * scale * gamma + beta; gamma and beta may be null.
  void (*normalize)(const float* in, float* out, std::int64_t n, float mean, float scale, const float* gamma,
                    const float* beta);
  /// out[i] = in[i] * scale[i] + shift[i]
  void (*scale_shift_each)(const float* in, const float* scale, const float* shift, float* out,
                           std::int64_t n);

  /// One LSTM step of `n` cells of one sample: gates i, f, g, o, each `apart` behind the one before; `cell`
  /// is read and written.
  void (*lstm_gates)(const float* gates, std::int64_t apart, float* cell, float* hidden, std::int64_t n);
  /// One GRU step: x and h are the two halves of the gates r, z, n, with their biases; `hidden` is read and
  /// written.
  void (*gru_gates)(const float* x, const float* h, std::int64_t apart, float* hidden, std::int64_t n);

  TileKernels tiles;
  WinogradKernels winograd;
  FoldKernels<float> f32;
  NumberKernels<double> f64;
  NumberKernels<std::uint8_t> boolean;  ///< every byte that is not 0 is true; results are 0 and 1
  NumberKernels<std::uint8_t> u8;
  NumberKernels<std::int8_t> i8;
  NumberKernels<std::int16_t> i16;
  NumberKernels<std::int32_t> i32;
  NumberKernels<std::int64_t> i64;
};

/// Those of the best instruction set this machine has, and that oneDNN may use (ONEDNN_MAX_CPU_ISA): a run
/// is as on a narrower machine throughout.
[[nodiscard]] const Kernels& kernels();
[[nodiscard]] Isa isa_in_use();
/// Those of one instruction set, which this machine must have: for tests.
[[nodiscard]] const Kernels& kernels_of(Isa isa);

}  // namespace ballast::ops
