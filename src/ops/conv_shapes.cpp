// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_shapes.h"

#include <algorithm>

#include "ops/args.h"

namespace ballast::ops {
namespace {

void require_weight(const char* op, const Tensor& x, const Tensor& weight, std::int64_t groups) {
  if (weight.rank() < 3 || weight.rank() > 5 || weight.numel() == 0) {
    fail(Errc::shape_mismatch, op,
         "weight {} is not [channels, channels, kernel…] with 1 to 3 spatial dimensions", form(weight));
  }
  if (x.rank() != weight.rank()) {
    fail(Errc::shape_mismatch, op,
         "{} with weight {}: [batch, channels, size…] or [channels, size…] with {} spatial dimensions is "
         "wanted",
         form(x), form(weight), weight.rank() - 2);
  }
  require_measurable(op, x, weight.rank() - 2);
  require_measurable(op, weight, weight.rank());
  if (groups < 1 || weight.shape()[0] % groups != 0)
    fail(Errc::shape_mismatch, op, "weight {} cannot be divided into {} groups", form(weight), groups);
}

Dims kernel_of(const Tensor& weight) {
  return ShapeView(weight.shape().data() + 2, weight.rank() - 2);
}

// Of a stride-1 convolution that keeps the size: as PyTorch, the odd one goes to the end.
void pad_to_same(ConvShapes& shapes) {
  for (std::size_t i = 0; i < shapes.kernel.size(); ++i) {
    if (shapes.stride[i] != 1)
      fail(Errc::invalid_argument, "conv", "padding \"same\" needs stride 1, not {}",
           to_string(shapes.stride));
    const std::int64_t total = shapes.dilation[i] * (shapes.kernel[i] - 1);
    shapes.before[i] = total / 2;
    shapes.after[i] = total - total / 2;
  }
}

// What is computed of kernels, dilations and paddings goes to kernels that count in 32 bits.
void require_measurable(const char* op, const Tensor& x, const ConvShapes& shapes) {
  for (std::size_t i = 0; i < shapes.kernel.size(); ++i) {
    const std::int64_t spread = shapes.dilation[i] * (shapes.kernel[i] - 1) + 1;
    const std::int64_t padded =
        x.shape()[i + 2] + shapes.before[i] + std::max<std::int64_t>(shapes.after[i], 0);
    if (std::max({spread, padded, shapes.output[i + 2]}) > kMostSpatial)
      fail(Errc::size_overflow, op, "{} with padding {} and dilation {} is beyond all measure", form(x),
           to_string(shapes.before), to_string(shapes.dilation));
  }
}

}  // namespace

ConvShapes conv_shapes(const Tensor& x, const Tensor& weight, const ConvArgs& args) {
  require_weight("conv", x, weight, args.groups);
  const std::size_t n = weight.rank() - 2;
  ConvShapes shapes{args.groups,
                    x.shape()[1],
                    weight.shape()[0],
                    kernel_of(weight),
                    spatial("conv", "stride", args.stride, n, 1),
                    spatial("conv", "dilation", args.dilation, n, 1),
                    spatial("conv", "padding", args.padding, n, 0),
                    spatial("conv", "padding", args.padding, n, 0),
                    {x.shape()[0], weight.shape()[0]}};
  if (shapes.in_channels != weight.shape()[1] * args.groups) {
    fail(Errc::shape_mismatch, "conv", "{} has {} channels; weight {} with {} groups takes {}", form(x),
         shapes.in_channels, form(weight), args.groups, weight.shape()[1] * args.groups);
  }
  if (args.same) pad_to_same(shapes);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t reach = x.shape()[i + 2] + shapes.before[i] + shapes.after[i] -
                               shapes.dilation[i] * (shapes.kernel[i] - 1) - 1;
    if (reach < 0) {
      fail(Errc::shape_mismatch, "conv",
           "{} with padding {} is smaller than the kernel of weight {} with dilation {}", form(x),
           to_string(shapes.before), form(weight), to_string(shapes.dilation));
    }
    shapes.output.push_back(reach / shapes.stride[i] + 1);
  }
  require_measurable("conv", x, shapes);
  return shapes;
}

ConvShapes conv_transpose_shapes(const Tensor& x, const Tensor& weight, const ConvTransposeArgs& args) {
  constexpr const char* kOp = "conv_transpose";
  require_weight(kOp, x, weight, args.groups);
  const std::size_t n = weight.rank() - 2;
  ConvShapes shapes{args.groups,
                    x.shape()[1],
                    weight.shape()[1] * args.groups,
                    kernel_of(weight),
                    spatial(kOp, "stride", args.stride, n, 1),
                    spatial(kOp, "dilation", args.dilation, n, 1),
                    spatial(kOp, "padding", args.padding, n, 0),
                    spatial(kOp, "padding", args.padding, n, 0),
                    {x.shape()[0], weight.shape()[1] * args.groups}};
  if (shapes.in_channels != weight.shape()[0]) {
    fail(Errc::shape_mismatch, kOp, "{} has {} channels; weight {} takes {}", form(x), shapes.in_channels,
         form(weight), weight.shape()[0]);
  }
  const Dims extra = spatial(kOp, "output_padding", args.output_padding, n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    if (extra[i] >= std::max(shapes.stride[i], shapes.dilation[i])) {
      fail(Errc::invalid_argument, kOp, "output_padding {} must be smaller than stride {} or dilation {}",
           to_string(extra), to_string(shapes.stride), to_string(shapes.dilation));
    }
    shapes.after[i] -= extra[i];  // may become negative: beyond the end
    const std::int64_t size = (x.shape()[i + 2] - 1) * shapes.stride[i] +
                              shapes.dilation[i] * (shapes.kernel[i] - 1) + 1 - shapes.before[i] -
                              shapes.after[i];
    if (size < 1)
      fail(Errc::shape_mismatch, kOp, "{} with weight {} and padding {} leaves nothing", form(x),
           form(weight), to_string(shapes.before));
    shapes.output.push_back(size);
  }
  require_measurable(kOp, x, shapes);
  return shapes;
}

}  // namespace ballast::ops
