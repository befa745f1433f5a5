// SPDX-License-Identifier: Apache-2.0
// Patches of images and back, shuffles: made of slices, padding and sums.
#include <utility>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ops/args.h"
#include "ops/made_of_others.h"

namespace ballast {
namespace {

struct PatchSizes {
  PatchSizes(const char* op, std::int64_t image_height, std::int64_t image_width, const Dims& kernel_size,
             const UnfoldArgs& args)
      : kernel(ops::spatial(op, "kernel", kernel_size, 2, 1)),
        dilation(ops::spatial(op, "dilation", args.dilation, 2, 1)),
        padding(ops::spatial(op, "padding", args.padding, 2, 0)),
        stride(ops::spatial(op, "stride", args.stride, 2, 1)),
        image({image_height, image_width}) {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
      const std::int64_t room = image[i] + 2 * padding[i] - reach;
      if (room < 0)
        fail(Errc::shape_mismatch, op, "a kernel that reaches over {} does not fit an image of {} + {}",
             reach, image[i], 2 * padding[i]);
      places.push_back(room / stride[i] + 1);
    }
  }

  [[nodiscard]] std::int64_t patch() const { return kernel[0] * kernel[1]; }

  Dims kernel;
  Dims dilation;
  Dims padding;
  Dims stride;
  Dims image;
  Dims places;
};

// What one element of the kernel sees: [batch, channels, places, places].
Tensor seen_by(const Tensor& padded, const PatchSizes& s, std::int64_t row, std::int64_t column) {
  const auto part = [&](std::size_t i, std::int64_t element) {
    const std::int64_t first = element * s.dilation[i];
    return Slice{first, first + (s.places[i] - 1) * s.stride[i] + 1, s.stride[i]};
  };
  return padded.index({Slice{}, Slice{}, part(0, row), part(1, column)});
}

// `stride` - 1 zeros after each element of the last two dimensions, the last ones cut off again.
Tensor spaced(const Tensor& x, const PatchSizes& s) {
  if (s.stride[0] == 1 && s.stride[1] == 1) return x;
  const Shape& shape = x.shape();
  const Tensor apart = pad(x.reshape({shape[0], shape[1], shape[2], 1, shape[3], 1}),
                           {0, s.stride[1] - 1, 0, 0, 0, s.stride[0] - 1});
  const Tensor wide = apart.reshape({shape[0], shape[1], shape[2] * s.stride[0], shape[3] * s.stride[1]});
  return wide.narrow(2, 0, (shape[2] - 1) * s.stride[0] + 1).narrow(3, 0, (shape[3] - 1) * s.stride[1] + 1);
}

// One element of every patch, put where it stood in the padded image.
Tensor put_back(const Tensor& x, const PatchSizes& s, std::int64_t row, std::int64_t column) {
  const Tensor wide = spaced(x, s);
  const std::int64_t top = row * s.dilation[0];
  const std::int64_t left = column * s.dilation[1];
  const std::int64_t height = s.image[0] + 2 * s.padding[0];
  const std::int64_t width = s.image[1] + 2 * s.padding[1];
  return pad(wide, {left, width - left - wide.shape()[3], top, height - top - wide.shape()[2]});
}

}  // namespace

Tensor unflatten(const Tensor& x, std::int64_t dim, const Dims& sizes) {
  const std::size_t axis = ops::axis_of("unflatten", dim, x);
  if (x.rank() == 0) fail(Errc::shape_mismatch, "unflatten", "{} has no dimension", ops::form(x));
  Shape shape;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (i != axis)
      shape.push_back(x.shape()[i]);
    else
      for (const std::int64_t size : sizes) shape.push_back(size);
  }
  Tensor y = x.reshape(shape);
  std::int64_t product = 1;  // -1 must not have been filled from the other dimensions
  for (std::size_t i = 0; i < sizes.size(); ++i)
    product = ops::checked_size("unflatten", product, y.shape()[axis + i]);
  if (product != x.shape()[axis])
    fail(Errc::shape_mismatch, "unflatten", "dimension {} of {} is not {}", dim, ops::form(x),
         to_string(sizes));
  return y;
}

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  if (x.rank() < 3 || groups < 1 || x.shape()[1] % groups != 0)
    fail(Errc::shape_mismatch, "channel_shuffle", "{} in {} groups", ops::form(x), groups);
  const Tensor grouped = x.reshape({x.shape()[0], groups, x.shape()[1] / groups, -1});
  return grouped.transpose(1, 2).reshape(x.shape());
}

Tensor unfold(const Tensor& x, const Dims& kernel, const UnfoldArgs& args) {
  if (x.rank() == 3) return unfold(x.unsqueeze(0), kernel, args).squeeze(0);
  if (x.rank() != 4) fail(Errc::shape_mismatch, "unfold", "{} is no image", ops::form(x));
  const PatchSizes s("unfold", x.shape()[2], x.shape()[3], kernel, args);
  const Tensor padded = pad(x, {s.padding[1], s.padding[1], s.padding[0], s.padding[0]});
  std::vector<Tensor> seen;
  for (std::int64_t row = 0; row < s.kernel[0]; ++row)
    for (std::int64_t column = 0; column < s.kernel[1]; ++column)
      seen.push_back(seen_by(padded, s, row, column));
  return stack(seen, 2).reshape({x.shape()[0], x.shape()[1] * s.patch(), s.places[0] * s.places[1]});
}

Tensor fold(const Tensor& x, const Dims& output, const Dims& kernel, const UnfoldArgs& args) {
  if (x.rank() == 2) return fold(x.unsqueeze(0), output, kernel, args).squeeze(0);
  const Dims image = ops::spatial("fold", "output", output, 2, 1);
  const PatchSizes s("fold", image[0], image[1], kernel, args);
  if (x.rank() != 3 || x.shape()[1] % s.patch() != 0 || x.shape()[2] != s.places[0] * s.places[1])
    fail(Errc::shape_mismatch, "fold", "{} is not [batch, channels * {}, {} * {}]", ops::form(x), s.patch(),
         s.places[0], s.places[1]);
  return ops::rounded_once(x, [&](const Tensor& v) {
    const Tensor patches =
        v.reshape({v.shape()[0], v.shape()[1] / s.patch(), s.patch(), s.places[0], s.places[1]});
    Tensor sum;
    for (std::int64_t i = 0; i < s.patch(); ++i) {
      const Tensor one = put_back(patches.index({Slice{}, Slice{}, i}), s, i / s.kernel[1], i % s.kernel[1]);
      sum = sum.defined() ? add(sum, one) : one;
    }
    return sum.narrow(2, s.padding[0], image[0]).narrow(3, s.padding[1], image[1]).contiguous();
  });
}

}  // namespace ballast
