// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "ops/activation.h"
#include "ops/args.h"
#include "ops/conv_shapes.h"
#include "ops/parallel.h"

namespace ballast::ops {
namespace {

// Up to three spatial dimensions as three.
using Three = std::array<std::int64_t, 3>;

Three three(const Dims& dims, std::int64_t missing, std::size_t skip = 0) {
  Three result{missing, missing, missing};
  const std::size_t n = dims.size() - skip;
  for (std::size_t i = 0; i < n; ++i) result[3 - n + i] = dims[skip + i];
  return result;
}

struct Loops {
  Three in;
  Three out;
  Three kernel;
  Three stride;
  Three dilation;
  Three before;
  std::int64_t taps;
};

Loops loops_of(const ConvShapes& shapes, const Tensor& x) {
  Loops loops{three(x.shape(), 1, 2),
              three(shapes.output, 1, 2),
              three(shapes.kernel, 1),
              three(shapes.stride, 1),
              three(shapes.dilation, 1),
              three(shapes.before, 0),
              1};
  loops.taps = loops.kernel[0] * loops.kernel[1] * loops.kernel[2];
  return loops;
}

Three position(std::int64_t index, const Three& size) {
  return {index / size[2] / size[1], index / size[2] % size[1], index % size[2]};
}

std::int64_t place(const Three& at, const Three& size) {
  return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

// For every tap of the kernel and the input position it meets at output position `at`: visit(tap, input
// place).
template <class Visit>
void for_each_tap(const Loops& loops, const Three& at, bool transposed, const Visit& visit) {
  for (std::int64_t tap = 0; tap < loops.taps; ++tap) {
    const Three k = position(tap, loops.kernel);
    Three source{};
    bool inside = true;
    for (std::size_t i = 0; i < 3; ++i) {
      if (transposed) {
        const std::int64_t spread = at[i] + loops.before[i] - k[i] * loops.dilation[i];
        inside = inside && spread >= 0 && spread % loops.stride[i] == 0;
        source[i] = spread / loops.stride[i];
      } else {
        source[i] = at[i] * loops.stride[i] - loops.before[i] + k[i] * loops.dilation[i];
      }
      inside = inside && source[i] >= 0 && source[i] < loops.in[i];
    }
    if (inside) visit(tap, place(source, loops.in));
  }
}

// The weight as [groups, taps, in, out] of a group, so that what is added to one pixel lies together.
Tensor by_taps(const ConvShapes& shapes, const Tensor& weight, std::int64_t taps, bool transposed) {
  const std::int64_t in = shapes.in_channels / shapes.groups;
  const std::int64_t out = shapes.out_channels / shapes.groups;
  const Tensor grouped = weight.reshape({shapes.groups, transposed ? in : out, transposed ? out : in, taps});
  return dense(grouped.permute(transposed ? Dims{0, 3, 1, 2} : Dims{0, 3, 2, 1}));
}

template <class T>
void run(const ConvShapes& shapes, const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& out,
         bool transposed) {
  const Loops loops = loops_of(shapes, x);
  const std::int64_t in_group = shapes.in_channels / shapes.groups;
  const std::int64_t out_group = shapes.out_channels / shapes.groups;
  const std::int64_t inputs = loops.in[0] * loops.in[1] * loops.in[2];
  const std::int64_t outputs = loops.out[0] * loops.out[1] * loops.out[2];
  const Tensor ordered = by_taps(shapes, weight, loops.taps, transposed);
  const auto* from = reinterpret_cast<const T*>(x.data());
  const auto* w = reinterpret_cast<const T*>(ordered.data());
  const auto* first = bias.defined() ? reinterpret_cast<const T*>(bias.data()) : nullptr;
  auto* to = reinterpret_cast<T*>(out.mutable_data());
  parallel(shapes.output[0] * outputs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* pixel = to + i * shapes.out_channels;
      if (first != nullptr)
        std::copy_n(first, shapes.out_channels, pixel);
      else
        std::fill_n(pixel, shapes.out_channels, T{0});
      for_each_tap(loops, position(i % outputs, loops.out), transposed,
                   [&](std::int64_t tap, std::int64_t source) {
                     const T* values = from + (i / outputs * inputs + source) * shapes.in_channels;
                     for (std::int64_t c = 0; c < shapes.in_channels; ++c) {
                       const std::int64_t group = c / in_group;
                       const T* row = w + ((group * loops.taps + tap) * in_group + c % in_group) * out_group;
                       T* sums = pixel + group * out_group;
                       for (std::int64_t o = 0; o < out_group; ++o) sums[o] += row[o] * values[c];
                     }
                   });
    }
  });
}

}  // namespace

void plain_conv(const ConvShapes& shapes, const Tensor& x, const Tensor& weight, const Tensor& bias,
                Tensor& out, bool transposed) {
  (out.dtype() == DType::f64 ? run<double> : run<float>)(shapes, x, weight, bias, out, transposed);
}

void add_bias(Tensor& out, const Tensor& bias, Activation activation) {
  constexpr std::int64_t kStretch = 4096;  // of several pixels: a few channels are not worth a kernel's call
  const std::int64_t channels = bias.numel();
  const std::int64_t stretch = std::max<std::int64_t>(kStretch / channels, 1) * channels;
  std::vector<float> repeated(static_cast<std::size_t>(stretch));
  for (std::size_t i = 0; i < repeated.size(); ++i)
    repeated[i] = data_of(bias)[i % static_cast<std::size_t>(channels)];
  const auto sum = kernels().binary[static_cast<std::size_t>(Binary::add)];
  const ActivationKernel then = kernel_of(activation);
  const auto finish = kernels().unary[static_cast<std::size_t>(then.which)];
  const std::int64_t count = out.numel();
  float* const to = data_of(out);
  parallel((count - 1) / stretch + 1, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * stretch; at < std::min(end * stretch, count); at += stretch) {
      const std::int64_t n = std::min(stretch, count - at);
      sum(to + at, 1, repeated.data(), 1, to + at, n);
      if (activation.kind != Activation::Kind::none)
        finish(to + at, to + at, n, static_cast<float>(then.p), static_cast<float>(then.q));
    }
  });
}

}  // namespace ballast::ops
