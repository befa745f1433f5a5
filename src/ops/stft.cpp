// SPDX-License-Identifier: Apache-2.0
// Spectra of frames, and the signal they are of: made of slices, products and transforms.
#include <algorithm>
#include <cmath>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/fft.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"
#include "ops/made_of_others.h"
#include "ops/operations.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

// The options with what is absent filled in.
struct Framing {
  Framing(const char* op, std::int64_t size, const StftArgs& args)
      : n(size), hop(args.hop_length.value_or(size / 4)), window(args.window) {
    const std::int64_t wide = args.win_length.value_or(size);
    if (n < 1 || hop < 1 || wide < 1 || wide > n || n > ops::kMostSpatial)
      fail(Errc::invalid_argument, op, "frames of {}, a window of {}, a hop of {}", n, wide, hop);
    if (!window.defined()) window = ones({wide});
    if (window.rank() != 1 || window.shape()[0] != wide)
      fail(Errc::shape_mismatch, op, "the window is {}, must be [{}]", ops::form(window), wide);
    if (wide < n) window = pad(window, {(n - wide) / 2, n - wide - (n - wide) / 2});
  }

  /// Of every element of every frame, its place in the signal: I64 [frames * n].
  [[nodiscard]] Tensor places(std::int64_t frames) const {
    return add(mul(arange(0, frames).unsqueeze(1), hop), arange(0, n)).reshape({-1});
  }

  std::int64_t n;
  std::int64_t hop;
  Tensor window;
};

Tensor framed(const Tensor& x, const Framing& by) {
  const std::int64_t length = x.shape()[1];
  if (length < by.n)
    fail(Errc::shape_mismatch, "stft", "{} is shorter than a frame of {}", ops::form(x), by.n);
  const std::int64_t frames = (length - by.n) / by.hop + 1;
  return index_select(x, 1, by.places(frames)).reshape({x.shape()[0], frames, by.n});
}

// [batch, frames * n] summed where they lie in the signal.
Tensor overlapped(const Tensor& pieces, const Framing& by, std::int64_t frames) {
  const std::int64_t length = by.n + by.hop * (frames - 1);
  return scatter_add(zeros({pieces.shape()[0], length}, pieces.dtype()), 1,
                     by.places(frames).unsqueeze(0).expand(pieces.shape()), pieces);
}

// What the windows of all frames make of a signal of ones; it must not be 0 where the signal is wanted.
Tensor envelope(const Framing& by, std::int64_t frames, DType dtype, std::int64_t first,
                std::int64_t length) {
  const Tensor squares = square(by.window.to(dtype)).unsqueeze(0).expand({frames, by.n}).reshape({1, -1});
  Tensor sums = overlapped(squares, by, frames).narrow(1, first, length);
  if (!tracing::on() && length > 0 && min(sums).item() < 1e-11)
    fail(Errc::invalid_argument, "istft", "the window is 0 where no other frame has a value");
  return sums;
}

}  // namespace

Tensor stft(const Tensor& x, std::int64_t n_fft, const StftArgs& args) {
  if (x.rank() == 1) return stft(x.unsqueeze(0), n_fft, args).squeeze(0);
  if (x.rank() != 2) fail(Errc::shape_mismatch, "stft", "{} is no signal [batch, length]", ops::form(x));
  const Framing by("stft", n_fft, args);
  return ops::rounded_once(x, [&](const Tensor& v) {
    const Tensor signal =
        args.center ? pad(v.unsqueeze(0), {n_fft / 2, n_fft / 2}, args.pad_mode).squeeze(0) : v;
    const Tensor frames = mul(framed(signal, by), by.window.to(v.dtype()));
    Tensor spectra = run(operations::dft, frames.unsqueeze(-1), false, args.onesided);
    if (args.normalized) spectra = mul(spectra, 1 / std::sqrt(static_cast<double>(n_fft)));
    return spectra.transpose(1, 2).contiguous();
  });
}

Tensor istft(const Tensor& x, std::int64_t n_fft, const StftArgs& args, std::optional<std::int64_t> length) {
  if (x.rank() == 3) return istft(x.unsqueeze(0), n_fft, args, length).squeeze(0);
  if (x.rank() != 4 || x.shape()[3] != 2 || x.shape()[2] < 1 || x.shape()[1] != n_fft / 2 + 1 ||
      !args.onesided)
    fail(Errc::shape_mismatch, "istft", "{} is not [batch, {}, frames, 2]", ops::form(x), n_fft / 2 + 1);
  const Framing by("istft", n_fft, args);
  return ops::rounded_once(x, [&](const Tensor& v) {
    const std::int64_t frames = v.shape()[2];
    Tensor pieces = mul(irfft(v.transpose(1, 2), n_fft), by.window.to(v.dtype()));
    if (args.normalized) pieces = mul(pieces, std::sqrt(static_cast<double>(n_fft)));
    const std::int64_t whole = n_fft + by.hop * (frames - 1);
    const std::int64_t first = args.center ? n_fft / 2 : 0;
    const std::int64_t last = length ? std::min(first + *length, whole) : whole - first;
    if (last <= first) fail(Errc::invalid_argument, "istft", "a signal of {}", last - first);
    const Tensor sums =
        overlapped(pieces.reshape({v.shape()[0], -1}), by, frames).narrow(1, first, last - first);
    const Tensor signal = div(sums, envelope(by, frames, v.dtype(), first, last - first));
    const std::int64_t lacking = length ? *length - (last - first) : 0;
    return lacking > 0 ? pad(signal, {0, lacking}) : signal;
  });
}

}  // namespace ballast
