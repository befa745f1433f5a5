// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/norm.h"

#include <cmath>
#include <vector>

#include "ops/args.h"
#include "ops/kernels.h"
#include "ops/native.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {

using ops::data_of;
using ops::form;
using ops::kernels;
using ops::parameter;

namespace {

struct Affine {
  std::vector<float> scale;
  std::vector<float> shift;
};

// (x - mean) / sqrt(variance + eps) * gamma + beta as x * scale + shift, in f64: eps may be all there is.
Affine affine_of(const Tensor& mean, const Tensor& variance, const Tensor& gamma, const Tensor& beta,
                 double eps) {
  const auto count = static_cast<std::size_t>(mean.numel());
  Affine affine{std::vector<float>(count), std::vector<float>(count)};
  for (std::size_t c = 0; c < count; ++c) {
    const double g = gamma.defined() ? static_cast<double>(data_of(gamma)[c]) : 1;
    const double b = beta.defined() ? static_cast<double>(data_of(beta)[c]) : 0;
    const double scale = g / std::sqrt(static_cast<double>(data_of(variance)[c]) + eps);
    affine.scale[c] = static_cast<float>(scale);
    affine.shift[c] = static_cast<float>(b - static_cast<double>(data_of(mean)[c]) * scale);
  }
  return affine;
}

// x [batch, channels, …] row-major: one scale and shift for each row of the rest.
void scale_planes(const Tensor& x, const Affine& affine, Tensor& out) {
  const std::int64_t channels = x.shape()[1];
  const std::int64_t plane = ops::product(x.shape(), 2, x.rank());
  const float* from = data_of(x);
  float* to = data_of(out);
  const auto kernel = kernels().unary[static_cast<std::size_t>(ops::Unary::scale_shift)];
  ops::parallel(x.shape()[0] * channels, ops::rows_per_thread(plane),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const auto c = static_cast<std::size_t>(i % channels);
                    kernel(from + i * plane, to + i * plane, plane, affine.scale[c], affine.shift[c]);
                  }
                });
}

// Channels innermost, or nothing after them: rows of channels.
void scale_channels(const Tensor& x, const Affine& affine, Tensor& out) {
  const std::int64_t channels = x.shape()[1];
  const float* from = data_of(x);
  float* to = data_of(out);
  ops::parallel(x.numel() / channels, ops::rows_per_thread(channels),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    kernels().scale_shift_each(from + i * channels, affine.scale.data(), affine.shift.data(),
                                               to + i * channels, channels);
                  }
                });
}

// The same in blocks: a row of pixels has its eight channels over and over.
void scale_blocks(const Tensor& blocks, const Affine& affine, Tensor& out) {
  const auto width = static_cast<std::size_t>(blocks.shape()[3] * ops::kBlock);
  const std::int64_t plane = blocks.shape()[2] * blocks.shape()[3] * ops::kBlock;
  const float* from = data_of(blocks);
  float* to = data_of(out);
  ops::parallel(blocks.shape()[0], ops::rows_per_thread(plane), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scale(width);
    std::vector<float> shift(width);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * ops::kBlock % affine.scale.size();
      for (std::size_t k = 0; k < width; ++k) {
        scale[k] = affine.scale[first + k % ops::kBlock];
        shift[k] = affine.shift[first + k % ops::kBlock];
      }
      for (std::int64_t at = i * plane; at < (i + 1) * plane; at += static_cast<std::int64_t>(width))
        kernels().scale_shift_each(from + at, scale.data(), shift.data(), to + at,
                                   static_cast<std::int64_t>(width));
    }
  });
}

Tensor shaped_parameter(const char* op, const char* what, const Tensor& x, const Shape& shape) {
  if (!x.defined()) return x;
  if (!(x.shape() == shape))
    fail(Errc::shape_mismatch, op, "{} is {}, must be {}", what, form(x), to_string(shape));
  return ops::dense_floats(op, x);
}

std::int64_t normalized_length(const char* op, const Tensor& x, const Shape& normalized) {
  const std::size_t skipped = x.rank() - std::min(x.rank(), normalized.size());
  bool fits = !normalized.empty() && normalized.size() <= x.rank();
  for (std::size_t i = 0; fits && i < normalized.size(); ++i) fits = x.shape()[skipped + i] == normalized[i];
  if (!fits)
    fail(Errc::shape_mismatch, op, "{} does not end with the normalized shape {}", form(x),
         to_string(normalized));
  return ops::product(normalized, 0, normalized.size());
}

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

Moments moments_of(const float* in, std::int64_t n, double eps) {
  const auto count = static_cast<double>(n);
  const double mean = kernels().sum(in, n) / count;
  const double variance = kernels().sum_squares(in, mean, n) / count;
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(variance + eps))};
}

template <class MomentsOf>
Tensor normalize_rows(const char* op, const Tensor& x, const Shape& normalized, const Tensor& gamma,
                      const Tensor& beta, const MomentsOf& moments_of_row) {
  const std::int64_t n = normalized_length(op, x, normalized);
  const Tensor g = shaped_parameter(op, "gamma", gamma, normalized);
  const Tensor b = shaped_parameter(op, "beta", beta, normalized);
  const Tensor in = ops::dense_floats(op, x);
  Tensor out = ops::new_floats(x.shape());
  if (out.numel() == 0) return out.to(x.dtype());
  const float* from = data_of(in);
  float* to = data_of(out);
  ops::parallel(x.numel() / n, ops::rows_per_thread(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Moments moments = moments_of_row(from + i * n, n);
      kernels().normalize(from + i * n, to + i * n, n, moments.mean, moments.scale, data_of(g), data_of(b));
    }
  });
  return out.to(x.dtype());
}

Tensor normalize_groups(const char* op, const Tensor& x, std::int64_t groups, const Tensor& gamma,
                        const Tensor& beta, double eps) {
  const std::int64_t channels = x.shape()[1];
  const Tensor g = parameter(op, "gamma", gamma, channels);
  const Tensor b = parameter(op, "beta", beta, channels);
  const Tensor in = ops::dense_floats(op, x);
  Tensor out = ops::new_floats(x.shape());
  if (out.numel() == 0) return out.to(x.dtype());
  const std::int64_t plane = ops::product(x.shape(), 2, x.rank());
  const std::int64_t members = channels / groups;
  const float* from = data_of(in);
  float* to = data_of(out);
  const auto kernel = kernels().unary[static_cast<std::size_t>(ops::Unary::scale_shift)];
  ops::parallel(x.shape()[0] * groups, ops::rows_per_thread(plane * members),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const Moments moments = moments_of(from + i * members * plane, members * plane, eps);
                    for (std::int64_t m = 0; m < members; ++m) {
                      const std::int64_t c = i % groups * members + m;
                      const float scale = moments.scale * (g.defined() ? data_of(g)[c] : 1.0F);
                      const float shift = (b.defined() ? data_of(b)[c] : 0.0F) - moments.mean * scale;
                      kernel(from + (i * members + m) * plane, to + (i * members + m) * plane, plane, scale,
                             shift);
                    }
                  }
                });
  return out.to(x.dtype());
}

Tensor batch_norm_cpu(const Operation& op, const Tensor& x, const Tensor& mean, const Tensor& variance,
                      const Tensor& gamma, const Tensor& beta, double eps) {
  if (x.rank() < 2) fail(Errc::shape_mismatch, op.name, "{} has no channels (dimension 1)", form(x));
  const std::int64_t channels = x.shape()[1];
  const Affine affine = affine_of(
      parameter(op.name, "mean", mean, channels), parameter(op.name, "variance", variance, channels),
      parameter(op.name, "gamma", gamma, channels), parameter(op.name, "beta", beta, channels), eps);
  if (const Tensor blocks = ops::blocks_of(x); blocks.defined()) {
    Tensor out = ops::new_blocks(x.shape());
    scale_blocks(blocks, affine, out);
    return ops::from_blocks(out, x.shape());
  }
  const Tensor native = ops::floats(op.name, ops::native_view(x));
  if (native.numel() > 0 && (ops::is_channels_last(native) || (x.rank() == 2 && native.is_contiguous()))) {
    Tensor out = x.rank() == 2 ? ops::new_floats(x.shape()) : ops::new_channels_last(DType::f32, x.shape());
    scale_channels(native, affine, out);
    return ops::row_major(out).to(x.dtype());
  }
  const Tensor in = ops::dense(native);
  Tensor out = ops::new_floats(x.shape());
  if (out.numel() > 0) scale_planes(in, affine, out);
  return out.to(x.dtype());
}

Tensor layer_norm_cpu(const Operation& op, const Tensor& x, const Shape& normalized, const Tensor& gamma,
                      const Tensor& beta, double eps) {
  return normalize_rows(op.name, x, normalized, gamma, beta,
                        [&](const float* row, std::int64_t n) { return moments_of(row, n, eps); });
}

Tensor rms_norm_cpu(const Operation& op, const Tensor& x, const Shape& normalized, const Tensor& gamma,
                    double added) {
  return normalize_rows(op.name, x, normalized, gamma, {}, [&](const float* row, std::int64_t n) {
    const double square = kernels().sum_squares(row, 0, n) / static_cast<double>(n);
    return Moments{0, static_cast<float>(1 / std::sqrt(square + added))};
  });
}

Tensor group_norm_cpu(const Operation& op, const Tensor& x, std::int64_t groups, const Tensor& gamma,
                      const Tensor& beta, double eps) {
  if (x.rank() < 2 || groups < 1 || x.shape()[1] % groups != 0) {
    fail(Errc::shape_mismatch, op.name, "{} has no channels (dimension 1) for {} groups", form(x), groups);
  }
  return normalize_groups(op.name, x, groups, gamma, beta, eps);
}

Tensor instance_norm_cpu(const Operation& op, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                         double eps) {
  if (x.rank() < 3) fail(Errc::shape_mismatch, op.name, "{} is not [batch, channels, size…]", form(x));
  if (x.shape()[1] == 0) return Tensor::empty(x.dtype(), x.shape());
  return normalize_groups(op.name, x, x.shape()[1], gamma, beta, eps);
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                   double)>
    batch_norm = {
        about("batch_norm", {"x", "mean", "variance", "gamma?", "beta?"}, {"eps"}, forms::batch_norm),
        {batch_norm_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const Dims&, const Tensor&, const Tensor&, double)>
    layer_norm = {about("layer_norm", {"x", "gamma?", "beta?"}, {"normalized", "eps"}, forms::norm_of_last),
                  {layer_norm_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const Dims&, const Tensor&, double)> rms_norm = {
    about("rms_norm", {"x", "gamma?"}, {"normalized", "eps"}, forms::norm_of_last), {rms_norm_cpu}};
constinit const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&, const Tensor&, double)>
    group_norm = {about("group_norm", {"x", "gamma?", "beta?"}, {"groups", "eps"}, forms::group_norm),
                  {group_norm_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, double)> instance_norm = {
    about("instance_norm", {"x", "gamma?", "beta?"}, {"eps"}, forms::instance_norm), {instance_norm_cpu}};

}  // namespace operations

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& gamma,
                  const Tensor& beta, double eps) {
  return run(operations::batch_norm, x, mean, variance, gamma, beta, eps);
}

Tensor layer_norm(const Tensor& x, const Shape& normalized, const Tensor& gamma, const Tensor& beta,
                  double eps) {
  return run(operations::layer_norm, x, normalized, gamma, beta, eps);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized, const Tensor& gamma, std::optional<double> eps) {
  const double step = x.dtype() == DType::f16 ? 0x1p-10 : (x.dtype() == DType::bf16 ? 0x1p-7 : 0x1p-23);
  return run(operations::rms_norm, x, normalized, gamma, eps.value_or(step));
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& gamma, const Tensor& beta, double eps) {
  return run(operations::group_norm, x, groups, gamma, beta, eps);
}

Tensor instance_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  return run(operations::instance_norm, x, gamma, beta, eps);
}

}  // namespace ballast
