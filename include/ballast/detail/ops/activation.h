// SPDX-License-Identifier: Apache-2.0
// Activations, and softmax.
//
// Takes x of any shape. Gives: a tensor of x's shape and, unless said otherwise, x's dtype; glu() halves its
// dimension. Throws: Errc::bad_dtype for integers and BOOL in those that need fractions (gelu(), elu(),
// softmax(), …; sigmoid() and tanh() make F32 of them); shape_mismatch for a dimension that is not there, one
// that glu() cannot halve, and an `alpha` of another size; invalid_argument for bounds the wrong way round,
// an alpha of 0 in celu(), and a lambda below 0 in softshrink().
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

[[nodiscard]] Tensor relu(const Tensor& x);
[[nodiscard]] Tensor relu6(const Tensor& x);
/// x * Φ(x), by erf.
[[nodiscard]] Tensor gelu(const Tensor& x);
/// GELU's approximation by tanh: GPT-2's "gelu_new".
[[nodiscard]] Tensor gelu_tanh(const Tensor& x);
[[nodiscard]] Tensor silu(const Tensor& x);
[[nodiscard]] Tensor sigmoid(const Tensor& x);
[[nodiscard]] Tensor log_sigmoid(const Tensor& x);
[[nodiscard]] Tensor tanh(const Tensor& x);
[[nodiscard]] Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
[[nodiscard]] Tensor softsign(const Tensor& x);
[[nodiscard]] Tensor elu(const Tensor& x, double alpha = 1);
[[nodiscard]] Tensor selu(const Tensor& x);
[[nodiscard]] Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// As after eval(): leaky_relu with the mean of both slopes.
[[nodiscard]] Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3);
[[nodiscard]] Tensor hardswish(const Tensor& x);
[[nodiscard]] Tensor hardsigmoid(const Tensor& x);
[[nodiscard]] Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);
[[nodiscard]] Tensor mish(const Tensor& x);
/// `alpha` has one element, or one for each channel (dimension 1).
[[nodiscard]] Tensor prelu(const Tensor& x, const Tensor& alpha);

[[nodiscard]] Tensor celu(const Tensor& x, double alpha = 1);
[[nodiscard]] Tensor hardshrink(const Tensor& x, double lambda = 0.5);
[[nodiscard]] Tensor softshrink(const Tensor& x, double lambda = 0.5);
[[nodiscard]] Tensor tanhshrink(const Tensor& x);
/// `value` where x is not above `threshold`.
[[nodiscard]] Tensor threshold(const Tensor& x, double threshold, double value);
/// The first half of `dim` times the sigmoid of the second.
[[nodiscard]] Tensor glu(const Tensor& x, std::int64_t dim = -1);

[[nodiscard]] Tensor softmax(const Tensor& x, std::int64_t dim = -1);
[[nodiscard]] Tensor softmin(const Tensor& x, std::int64_t dim = -1);
[[nodiscard]] Tensor log_softmax(const Tensor& x, std::int64_t dim = -1);

/// An activation that an operation applies to its result while it still has it at hand.
struct Activation {
  /// Which function; none: the result stays as it is.
  enum class Kind : std::uint8_t {
    none,
    relu,
    relu6,
    gelu,
    gelu_tanh,
    silu,
    sigmoid,
    tanh,
    leaky_relu,
    elu,
    hardswish,
    hardsigmoid,
    mish
  };
  Kind kind = Kind::none;  ///< which function
  std::optional<double> alpha =
      {};  ///< leaky_relu's slope, elu's alpha; 0.01 and 1 when absent, as in PyTorch

  /// None.
  Activation() = default;

  /// This one, with its parameter.
  Activation(Kind which, std::optional<double> parameter = {}) : kind(which), alpha(parameter) {}

  /// alpha, or what stands for it.
  [[nodiscard]] double number() const {
    if (kind != Kind::leaky_relu && kind != Kind::elu) return 0;
    return alpha.value_or(kind == Kind::elu ? 1 : 0.01);
  }
};

/// The activation of x: relu(x), gelu(x), …; x itself for none.
[[nodiscard]] Tensor activate(const Tensor& x, Activation activation);

}  // namespace ballast

#pragma GCC visibility pop
