// SPDX-License-Identifier: Apache-2.0
// Tensors from nothing.
//
// Gives: a new tensor of the shape and dtype that is asked for. Throws: Errc::size_overflow for a shape that
// is negative or beyond 64 bits; bad_dtype for what cannot be filled (complex, quantized, less than a byte),
// and of rand_like(), randn_like(), gumbel_softmax() and multinomial() unless floating; invalid_argument for
// a step of 0 or one that never arrives, negative counts, an empty range, weights nothing can be drawn from,
// a tau not above 0, and an undefined x; shape_mismatch for weights that are no list and no matrix. A
// Generator belongs to one thread at a time.
#pragma once

#include <cstdint>

#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

[[nodiscard]] Tensor zeros(const Shape& shape, DType dtype = DType::f32);
[[nodiscard]] Tensor ones(const Shape& shape, DType dtype = DType::f32);
/// The number is converted to `dtype`.
[[nodiscard]] Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
/// I64: start, start + step, … before stop.
[[nodiscard]] Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1);
/// The same in `dtype`.
[[nodiscard]] Tensor arange(double start, double stop, double step, DType dtype);
/// F32, both ends included.
[[nodiscard]] Tensor linspace(double start, double stop, std::int64_t steps);
[[nodiscard]] Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32);

// With the shape and dtype of another.
[[nodiscard]] Tensor zeros_like(const Tensor& x);
[[nodiscard]] Tensor ones_like(const Tensor& x);
[[nodiscard]] Tensor full_like(const Tensor& x, double value);

/// Random numbers that depend on the seed and their own place alone, not on threads or machines:
/// Philox-4x32-10 with the seed as its key and, for element i of call number c, (i / 4, c) as its counter;
/// word i % 4 is element i's. rand takes the word's upper 24 bits times 2^-24; randn makes elements 2k and 2k
/// + 1 from words 2k and 2k + 1 by Box and Muller.
class Generator {
 public:
  /// The same numbers for the same seed.
  explicit Generator(std::uint64_t seed) noexcept : seed_(seed) {}

  /// What it was made with.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

  /// The number of this call: 0, 1, …
  std::uint64_t next_call() noexcept { return calls_++; }

 private:
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
};

/// F32, uniform in [0, 1).
[[nodiscard]] Tensor rand(const Shape& shape, Generator& generator);
/// F32, normal with mean 0 and variance 1.
[[nodiscard]] Tensor randn(const Shape& shape, Generator& generator);
/// I64, each of low, …, high - 1 as likely as the next: the upper 64 bits of (high - low) times a number made
/// of two words of rand's.
[[nodiscard]] Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Generator& generator);
/// I64 [..., count]: places of the last dimension, drawn as often as their weights (not negative) say; with
/// `replacement` one may come several times.
[[nodiscard]] Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement,
                                 Generator& generator);
[[nodiscard]] Tensor rand_like(const Tensor& x, Generator& generator);
[[nodiscard]] Tensor randn_like(const Tensor& x, Generator& generator);
[[nodiscard]] Tensor randint_like(const Tensor& x, std::int64_t low, std::int64_t high, Generator& generator);
/// softmax of (x + noise) / tau: how likely each place is to win a draw by exp(x). With `hard`, 1 at the
/// winner and 0 elsewhere.
[[nodiscard]] Tensor gumbel_softmax(const Tensor& x, Generator& generator, double tau = 1, bool hard = false,
                                    std::int64_t dim = -1);

}  // namespace ballast

#pragma GCC visibility pop
