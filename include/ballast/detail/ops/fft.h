// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of any length, along the last dimension. Complex numbers are pairs: a last dimension of
// 2, real and imaginary part, as torch.view_as_real shows them. F32 and F64 (computed in F64), F16 and BF16.
//
// Gives: x's dtype, in the shape that each function says. Throws: Errc::shape_mismatch unless the last
// dimension is 2 where complex numbers are wanted, for a signal shorter than a frame, and a window of another
// size; bad_dtype unless floating; invalid_argument for a length, frame or hop below 1;
// size_overflow for a window beyond 64 bits. A transform takes n log n steps, whatever n is.
#pragma once

#include <cstdint>
#include <optional>

#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/operand.h"

#pragma GCC visibility push(default)

namespace ballast {

/// [..., n, 2] → [..., n, 2], as torch.fft.fft; ifft divides by n.
[[nodiscard]] Tensor fft(const Tensor& x);
[[nodiscard]] Tensor ifft(const Tensor& x);
/// Real [..., n] → [..., n / 2 + 1, 2]: the other half mirrors it.
[[nodiscard]] Tensor rfft(const Tensor& x);
/// [..., m, 2] → real [..., n], n = 2 (m - 1) when absent.
[[nodiscard]] Tensor irfft(const Tensor& x, std::optional<std::int64_t> n = {});

struct StftArgs {
  std::optional<std::int64_t> hop_length = {};  ///< n_fft / 4 when absent
  std::optional<std::int64_t> win_length = {};  ///< n_fft when absent
  Tensor window = {};                           ///< [win_length]; ones when undefined
  bool center = true;                           ///< frame t is centred at t * hop
  PadMode pad_mode = PadMode::reflect;
  bool normalized = false;
  bool onesided = true;
};

/// The spectra of overlapping frames: [..., length] → [..., n_fft / 2 + 1 (all n_fft without onesided),
/// frames, 2].
[[nodiscard]] Tensor stft(const Tensor& x, std::int64_t n_fft, const StftArgs& args = {});
/// The signal of such spectra (onesided), `length` long when given. Errc::invalid_argument where the window
/// leaves a part of the signal out.
[[nodiscard]] Tensor istft(const Tensor& x, std::int64_t n_fft, const StftArgs& args = {},
                           std::optional<std::int64_t> length = {});

/// Of `length` points, as torch.hann_window (periodic).
[[nodiscard]] Tensor hann_window(std::int64_t length);

}  // namespace ballast

#pragma GCC visibility pop
