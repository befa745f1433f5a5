// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/args.h"
#include "ops/kernels.h"
#include "ops/native.h"
#include "ops/operations.h"
#include "ops/parallel.h"

namespace ballast {

using ops::data_of;
using ops::form;

namespace {

// One output position along one dimension is a weighted sum of a few inputs.
struct Tap {
  std::int64_t index;
  float weight;
};

struct Taps {
  std::size_t each;       // taps of one position
  std::vector<Tap> taps;  // position after position
};

struct Axis {
  std::int64_t in;
  std::int64_t out;
  float scale;  // inputs for one output
};

// Keys' cubic with PyTorch's parameter.
float cubic_weight(float distance) {
  constexpr float kA = -0.75F;
  const float d = std::abs(distance);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
}

float source_of(const Axis& axis, std::int64_t o, bool align_corners) {
  const auto position = static_cast<float>(o);
  return align_corners ? axis.scale * position : axis.scale * (position + 0.5F) - 0.5F;
}

Taps taps_of(const Axis& axis, const ResizeArgs& args) {
  const auto inside = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, axis.in - 1); };
  Taps taps{args.mode == ResizeMode::nearest ? 1U : (args.mode == ResizeMode::linear ? 2U : 4U), {}};
  for (std::int64_t o = 0; o < axis.out; ++o) {
    if (args.mode == ResizeMode::nearest) {
      taps.taps.push_back(
          {inside(static_cast<std::int64_t>(std::floor(static_cast<float>(o) * axis.scale))), 1});
      continue;
    }
    float source = source_of(axis, o, args.align_corners);
    if (args.mode == ResizeMode::linear) source = std::max(source, 0.0F);
    const float floor = std::floor(source);
    const float rest = source - floor;
    const auto first = static_cast<std::int64_t>(floor);
    if (args.mode == ResizeMode::linear) {
      const std::int64_t low = inside(first);
      taps.taps.push_back({low, 1 - rest});
      taps.taps.push_back({inside(low + 1), rest});
    } else {
      for (std::int64_t k = -1; k <= 2; ++k)
        taps.taps.push_back({inside(first + k), cubic_weight(rest - static_cast<float>(k))});
    }
  }
  return taps;
}

// [outer, in, inner] → [outer, out, inner].
void resize_axis(const float* from, float* to, std::int64_t outer, const Axis& axis, std::int64_t inner,
                 const Taps& taps) {
  ops::parallel(outer * axis.out, 8192 / (inner + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* rows = from + i / axis.out * axis.in * inner;
      const Tap* tap = taps.taps.data() + static_cast<std::size_t>(i % axis.out) * taps.each;
      float* row = to + i * inner;
      if (taps.each == 1) {
        std::copy_n(rows + tap->index * inner, inner, row);
        continue;
      }
      if (inner == 1) {
        float sum = 0;
        for (std::size_t k = 0; k < taps.each; ++k) sum += tap[k].weight * rows[tap[k].index];
        *row = sum;
        continue;
      }
      std::fill_n(row, inner, 0.0F);
      for (std::size_t k = 0; k < taps.each; ++k)
        ops::kernels().axpy(tap[k].weight, rows + tap[k].index * inner, row, inner);
    }
  });
}

// interpolate looks at the factor only where the size changes; except that cubic always does, and nearest in
// one and three dimensions. In two it also takes every element twice whenever the size doubles.
float factor_scale(const Axis& axis, const ResizeArgs& args, std::size_t spatial, double factor) {
  const bool by_size = args.mode == ResizeMode::linear || (args.mode == ResizeMode::nearest && spatial == 2);
  if (by_size && axis.out == axis.in) return 1;
  if (args.mode == ResizeMode::nearest && spatial == 2 && axis.out == 2 * axis.in) return 0.5F;
  return static_cast<float>(1 / factor);
}

std::vector<Axis> axes_of(const Tensor& x, const ResizeArgs& args) {
  const std::size_t spatial = x.rank() < 3 ? 0 : x.rank() - 2;
  if (spatial < 1 || spatial > 3)
    fail(Errc::shape_mismatch, "resize", "{} is not [batch, channels, size…]", form(x));
  if (args.mode == ResizeMode::cubic && spatial != 2)
    fail(Errc::shape_mismatch, "resize", "cubic needs two spatial dimensions, not {}", form(x));
  if (args.mode == ResizeMode::nearest && args.align_corners)
    fail(Errc::invalid_argument, "resize", "nearest has no align_corners");
  if (args.size.empty() == args.scale.empty())
    fail(Errc::invalid_argument, "resize", "needs a size or a scale, not both");
  if (!args.size.empty()) static_cast<void>(ops::spatial("resize", "size", args.size, spatial, 1));
  if (!args.scale.empty() && args.scale.size() != 1 && args.scale.size() != spatial) {
    fail(Errc::shape_mismatch, "resize", "{} factors for {}", args.scale.size(), form(x));
  }
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < spatial; ++i) {
    Axis axis{x.shape()[i + 2], 0, 0};
    const double factor = args.scale.empty() ? 0 : args.scale[args.scale.size() == 1 ? 0 : i];
    const double wanted = args.scale.empty() ? static_cast<double>(args.size[args.size.size() == 1 ? 0 : i])
                                             : std::floor(static_cast<double>(axis.in) * factor);
    if (axis.in < 1 || !(wanted >= 1 && wanted <= static_cast<double>(ops::kMostSpatial))) {
      fail(Errc::shape_mismatch, "resize", "{} cannot become {} in spatial dimension {}", form(x), wanted, i);
    }
    axis.out = static_cast<std::int64_t>(wanted);
    if (args.align_corners) {
      axis.scale = axis.out > 1 ? static_cast<float>(axis.in - 1) / static_cast<float>(axis.out - 1) : 0;
    } else {
      axis.scale = args.scale.empty() ? static_cast<float>(axis.in) / static_cast<float>(axis.out)
                                      : factor_scale(axis, args, spatial, factor);
    }
    axes.push_back(axis);
  }
  return axes;
}

Tensor resize_cpu(const Operation& op, const Tensor& x, const ResizeArgs& args) {
  const std::vector<Axis> axes = axes_of(x, args);
  const Tensor native = ops::floats(op.name, ops::native_view(x));
  const bool channels_last = ops::is_channels_last(native);
  Tensor current = channels_last ? native : ops::dense(native);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t dim = i + 2;
    if (axes[i].in == axes[i].out && axes[i].scale == 1) continue;
    Shape shape = current.shape();
    shape[dim] = axes[i].out;
    Tensor out = channels_last ? ops::new_channels_last(DType::f32, shape) : ops::new_floats(shape);
    if (out.numel() > 0) {
      const std::int64_t before = ops::product(shape, channels_last ? 2 : 1, dim) * shape[0];
      const std::int64_t after = ops::product(shape, dim + 1, shape.size()) * (channels_last ? shape[1] : 1);
      resize_axis(data_of(std::as_const(current)), data_of(out), before, axes[i], after,
                  taps_of(axes[i], args));
    }
    current = out;
  }
  return ops::row_major(current).to(x.dtype());
}

}  // namespace

// What a trace writes down.
Attributes attributes_of(const ResizeArgs& args) {
  return {{"size", args.size},
          {"scale", args.scale},
          {"mode", static_cast<std::int64_t>(args.mode)},
          {"align_corners", std::int64_t{args.align_corners}}};
}

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const ResizeArgs&)> resize = {
    about("resize", {"x"}, {}, forms::resize), {resize_cpu}};

}  // namespace operations

Tensor resize(const Tensor& x, const ResizeArgs& args) {
  return run(operations::resize, x, args);
}

}  // namespace ballast
