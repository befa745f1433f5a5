// SPDX-License-Identifier: Apache-2.0
// Fourier transforms: powers of two by halves (Cooley and Tukey), other lengths as a convolution of such a
// length (Bluestein). In F64: the twiddles of a long signal need it.
#include "ballast/detail/ops/fft.h"

#include <cmath>
#include <complex>
#include <utility>
#include <vector>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {
namespace {

using ComplexNumber = std::complex<double>;
using Signal = std::vector<ComplexNumber>;

ComplexNumber turned_by(double turns) {
  return std::polar(1.0, 2 * std::acos(-1.0) * turns);
}

// Without std::complex's care for infinities, which the compiler calls a function for.
ComplexNumber complex_product(const ComplexNumber& a, const ComplexNumber& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// What transforms of one length share.
class FourierPlan {
 public:
  FourierPlan(std::size_t length, bool inverse) : length_(length), sign_(inverse ? 1 : -1) {
    while (padded_ < length) padded_ *= 2;
    if (padded_ == length) {
      make_twiddles();
      return;
    }
    padded_ = 1;
    while (padded_ < 2 * length - 1) padded_ *= 2;
    make_twiddles();
    chirp_.resize(length);
    for (std::size_t k = 0; k < length; ++k)  // k² modulo 2 n, so that nothing is lost for large k
      chirp_[k] =
          turned_by(sign_ * static_cast<double>(k * k % (2 * length)) / (2 * static_cast<double>(length)));
    response_.resize(padded_);
    for (std::size_t k = 0; k < length; ++k) {
      response_[k] = std::conj(chirp_[k]);
      if (k > 0) response_[padded_ - k] = std::conj(chirp_[k]);
    }
    by_halves(response_);
  }

  void run(Signal& x) const {
    if (chirp_.empty()) return by_halves(x);
    Signal y(padded_);
    for (std::size_t k = 0; k < length_; ++k) y[k] = complex_product(x[k], chirp_[k]);
    by_halves(y);
    for (std::size_t k = 0; k < padded_; ++k) y[k] = std::conj(complex_product(y[k], response_[k]));
    by_halves(y);  // of conjugates: the way back, conjugated
    for (std::size_t k = 0; k < length_; ++k)
      x[k] = complex_product(std::conj(y[k]) / static_cast<double>(padded_), chirp_[k]);
  }

 private:
  void make_twiddles() {
    twiddles_.resize(padded_ / 2);
    for (std::size_t k = 0; k < padded_ / 2; ++k)
      twiddles_[k] = turned_by(sign_ * static_cast<double>(k) / static_cast<double>(padded_));
  }

  void by_halves(Signal& x) const {
    const std::size_t n = padded_;
    for (std::size_t i = 1, j = 0; i < n; ++i) {
      std::size_t bit = n / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (std::size_t half = 1; half < n; half *= 2) {
      const std::size_t step = n / (2 * half);
      for (std::size_t begin = 0; begin < n; begin += 2 * half)
        for (std::size_t k = 0; k < half; ++k) {
          const ComplexNumber b = complex_product(x[begin + half + k], twiddles_[k * step]);
          x[begin + half + k] = x[begin + k] - b;
          x[begin + k] += b;
        }
    }
  }

  std::size_t length_;
  double sign_;
  std::size_t padded_ = 1;
  Signal twiddles_;
  Signal chirp_;
  Signal response_;
};

// x [..., n, 1 or 2] → [..., n or n / 2 + 1, 2]; the inverse divides by n.
Tensor dft_cpu(const Operation& op, const Tensor& x, bool inverse, bool onesided) {
  if (x.rank() < 2 || x.shape()[x.rank() - 1] < 1 || x.shape()[x.rank() - 1] > 2 ||
      x.shape()[x.rank() - 2] < 1)
    fail(Errc::shape_mismatch, op.name, "{} is not [..., n, 1 or 2]", ops::form(x));
  if (!is_floating(x.dtype())) fail(Errc::bad_dtype, op.name, "of {} there is none", ops::form(x));
  ops::require_computable(op.name, x);
  const std::int64_t parts = x.shape()[x.rank() - 1];
  const std::int64_t n = x.shape()[x.rank() - 2];
  const std::int64_t kept = onesided ? n / 2 + 1 : n;
  Shape shape = x.shape();
  shape[x.rank() - 2] = kept;
  shape[x.rank() - 1] = 2;
  const Tensor in = ops::dense(x.to(DType::f64));
  Tensor out = ops::new_tensor(DType::f64, shape);
  if (out.numel() == 0) return out.to(x.dtype());
  const double* from = in.span<double>().data();
  auto* to = reinterpret_cast<double*>(out.mutable_data());
  const FourierPlan plan(static_cast<std::size_t>(n), inverse);
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  ops::parallel(in.numel() / (n * parts), ops::rows_per_thread(n * 16),
                [&](std::int64_t begin, std::int64_t end) {
                  Signal signal(static_cast<std::size_t>(n));
                  for (std::int64_t row = begin; row < end; ++row) {
                    for (std::int64_t k = 0; k < n; ++k) {
                      const double* value = from + (row * n + k) * parts;
                      signal[static_cast<std::size_t>(k)] = {value[0], parts == 2 ? value[1] : 0};
                    }
                    plan.run(signal);
                    for (std::int64_t k = 0; k < kept; ++k) {
                      to[(row * kept + k) * 2] = signal[static_cast<std::size_t>(k)].real() * scale;
                      to[(row * kept + k) * 2 + 1] = signal[static_cast<std::size_t>(k)].imag() * scale;
                    }
                  }
                });
  return out.to(x.dtype());
}

void require_pairs(const char* op, const Tensor& x) {
  if (x.rank() < 2 || x.shape()[x.rank() - 1] != 2)
    fail(Errc::shape_mismatch, op, "{} is not [..., n, 2]: pairs of real and imaginary part", ops::form(x));
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, bool, bool)> dft = {
    about("dft", {"x"}, {"inverse", "onesided"}, forms::dft), {dft_cpu}};

}  // namespace operations

Tensor fft(const Tensor& x) {
  require_pairs("fft", x);
  return run(operations::dft, x, false, false);
}

Tensor ifft(const Tensor& x) {
  require_pairs("ifft", x);
  return run(operations::dft, x, true, false);
}

Tensor rfft(const Tensor& x) {
  return run(operations::dft, x.unsqueeze(-1), false, true);
}

// The other half of the spectrum, from the conjugates; then the real part of what it is the spectrum of.
Tensor irfft(const Tensor& x, std::optional<std::int64_t> n) {
  require_pairs("irfft", x);
  const std::int64_t given = x.shape()[x.rank() - 2];
  const std::int64_t length = n.value_or(2 * (given - 1));
  if (length < 1) fail(Errc::invalid_argument, "irfft", "a signal of {}", length);
  const std::int64_t half = length / 2 + 1;
  Tensor left = half <= given ? x.narrow(-2, 0, half) : pad(x, {0, 0, 0, half - given});
  // The imaginary part of a mean, and of the middle of an even length, says nothing of a real signal.
  const Tensor real = left.narrow(-1, 0, 1);
  const Tensor imaginary = left.narrow(-1, 1, 1);
  const std::int64_t mirrored = length - half;
  std::vector<Tensor> parts = {concat({real.narrow(-2, 0, 1), zeros_like(real.narrow(-2, 0, 1))}, -1)};
  if (mirrored > 0) parts.push_back(left.narrow(-2, 1, mirrored));
  if (half - 1 > mirrored) {
    const Tensor middle = real.narrow(-2, half - 1, 1);
    parts.push_back(concat({middle, zeros_like(middle)}, -1));
  }
  if (mirrored > 0)
    parts.push_back(concat(
        {flip(real.narrow(-2, 1, mirrored), {-2}), neg(flip(imaginary.narrow(-2, 1, mirrored), {-2}))}, -1));
  return ifft(concat(parts, -2)).index({ellipsis, 0}).contiguous();
}

Tensor hann_window(std::int64_t length) {
  if (length < 1) fail(Errc::invalid_argument, "hann_window", "{} points", length);
  if (length == 1) return ones({1});                    // torch's exception
  Tensor window = Tensor::empty(DType::f32, {length});  // refuses what cannot be, before anything is made
  float* to = ops::data_of(window);
  for (std::int64_t i = 0; i < length; ++i)
    to[i] = static_cast<float>(
        0.5 - 0.5 * std::cos(2 * std::acos(-1.0) * static_cast<double>(i) / static_cast<double>(length)));
  return window;
}

}  // namespace ballast
