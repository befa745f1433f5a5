// SPDX-License-Identifier: Apache-2.0
// Pooling that says where its values were, the way back, and pooling by powers.
#include <array>
#include <limits>
#include <utility>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/pool.h"
#include "ops/args.h"
#include "ops/made_of_others.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/pool.h"
#include "ops/rows.h"

namespace ballast {

using ops::PoolSizes;

namespace {

using Triple = std::array<std::int64_t, 3>;

// Up to three numbers as three.
Triple triple(ShapeView numbers, std::int64_t missing) {
  Triple all{missing, missing, missing};
  for (std::size_t i = 0; i < numbers.size(); ++i) all[3 - numbers.size() + i] = numbers[i];
  return all;
}

struct Found {
  float value = -std::numeric_limits<float>::infinity();
  std::int64_t at = -1;
};

struct WindowSizes {
  Triple in;
  Triple kernel;
  Triple stride;
  Triple padding;
  Triple dilation;
};

// The largest of a window that begins at `at` of the image; NaN is larger than all, the last one stays, as in
// PyTorch.
Found largest_in(const float* image, const WindowSizes& s, const Triple& at) {
  Found found;
  const auto inside = [&](std::size_t i, std::int64_t k) {
    const std::int64_t place = at[i] * s.stride[i] - s.padding[i] + k * s.dilation[i];
    return place >= 0 && place < s.in[i] ? place : -1;
  };
  for (std::int64_t d = 0; d < s.kernel[0]; ++d) {
    const std::int64_t z = inside(0, d);
    for (std::int64_t h = 0; z >= 0 && h < s.kernel[1]; ++h) {
      const std::int64_t y = inside(1, h);
      for (std::int64_t w = 0; y >= 0 && w < s.kernel[2]; ++w) {
        const std::int64_t x = inside(2, w);
        if (x < 0) continue;
        const std::int64_t place = (z * s.in[1] + y) * s.in[2] + x;
        if (found.at < 0 || image[place] > found.value || image[place] != image[place])
          found = {image[place], place};
      }
    }
  }
  return found;
}

std::array<Tensor, 2> max_pool_with_indices_cpu(const Operation& op, const Tensor& x, const PoolSizes& sizes,
                                                bool ceil_mode) {
  const std::size_t spatial = sizes.kernel.size();
  const std::size_t first = x.rank() - spatial;
  const Tensor in = ops::dense_floats(op.name, x);
  Shape shape = x.shape();
  for (std::size_t i = 0; i < spatial; ++i)
    shape[first + i] = ops::pooled_size(op.name, x, sizes, i, ceil_mode);
  Tensor values = ops::new_floats(shape);
  Tensor indices = ops::new_tensor(DType::i64, shape);
  if (values.numel() == 0) return {values.to(x.dtype()), indices};
  const WindowSizes s{triple(ShapeView(x.shape().data() + first, spatial), 1), triple(sizes.kernel, 1),
                      triple(sizes.stride, 1), triple(sizes.padding, 0), triple(sizes.dilation, 1)};
  const Triple out = triple(ShapeView(shape.data() + first, spatial), 1);
  const std::int64_t image = s.in[0] * s.in[1] * s.in[2];
  const std::int64_t places = out[0] * out[1] * out[2];
  const float* from = ops::data_of(std::as_const(in));
  float* to = ops::data_of(values);
  auto* at = reinterpret_cast<std::int64_t*>(indices.mutable_data());
  ops::parallel(
      values.numel() / places, ops::rows_per_thread(places * 8), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * places; i < end * places; ++i) {
          const std::int64_t place = i % places;
          const Found found = largest_in(from + i / places * image, s,
                                         {place / out[2] / out[1], place / out[2] % out[1], place % out[2]});
          to[i] = found.value;
          at[i] = found.at;
        }
      });
  return {values.to(x.dtype()), indices};
}

// [..., size…] as [..., all places].
Tensor flat_images(const Tensor& x, std::size_t spatial) {
  Shape shape = ShapeView(x.shape().data(), x.rank() - spatial);
  shape.push_back(ops::product(x.shape(), x.rank() - spatial, x.rank()));
  return x.reshape(shape);
}

}  // namespace

namespace operations {

constinit const OperationOf<std::array<Tensor, 2>(const Tensor&, const ops::PoolSizes&, bool)>
    max_pool_with_indices = {about("max_pool_with_indices", {"x"}, {"ceil_mode"}, forms::pooled_with_indices),
                             {max_pool_with_indices_cpu}};

}  // namespace operations

MaxPooled max_pool_with_indices(const Tensor& x, const Dims& kernel, const MaxPoolArgs& args) {
  auto [values, indices] =
      run(operations::max_pool_with_indices, x,
          ops::pool_sizes("max_pool_with_indices", x, kernel, args.stride, args.padding, args.dilation),
          args.ceil_mode);
  return {std::move(values), std::move(indices)};
}

Tensor max_unpool(const Tensor& x, const Tensor& indices, const Dims& kernel, const MaxUnpoolArgs& args) {
  constexpr const char* kOp = "max_unpool";
  if (!(x.shape() == indices.shape()))
    fail(Errc::shape_mismatch, kOp, "{} with indices {}", ops::form(x), ops::form(indices));
  const PoolSizes sizes = ops::pool_sizes(kOp, x, kernel, args.stride, args.padding, {1});
  const std::size_t spatial = sizes.kernel.size();
  if (!args.output_size.empty() && args.output_size.size() != spatial)
    fail(Errc::shape_mismatch, kOp, "output_size {} for {} spatial dimensions", to_string(args.output_size),
         spatial);
  Shape shape = x.shape();
  for (std::size_t i = 0; i < spatial; ++i) {
    std::int64_t& size = shape[x.rank() - spatial + i];
    size = (size - 1) * sizes.stride[i] - 2 * sizes.padding[i] + sizes.kernel[i];
    const std::int64_t wanted = args.output_size.empty() ? size : args.output_size[i];
    if (size < 1 || std::abs(wanted - size) >= sizes.stride[i] + (args.output_size.empty() ? 1 : 0))
      fail(Errc::shape_mismatch, kOp, "an image of {} in dimension {}: {} is pooled from sizes around {}",
           wanted, i, ops::form(x), size);
    size = wanted;
  }
  if (!try_numel(shape)) fail(Errc::size_overflow, kOp, "{} is beyond all measure", to_string(shape));
  Shape empty = ShapeView(shape.data(), x.rank() - spatial);
  empty.push_back(ops::product(shape, x.rank() - spatial, x.rank()));
  return scatter(zeros(empty, x.dtype()), -1, flat_images(indices, spatial), flat_images(x, spatial))
      .reshape(shape);
}

Tensor lp_pool(const Tensor& x, double norm_type, const Dims& kernel, const LpPoolArgs& args) {
  if (norm_type == 0) fail(Errc::invalid_argument, "lp_pool", "norm_type is 0");
  return ops::rounded_once(x, [&](const Tensor& v) {
    const Tensor means =
        avg_pool(pow(v, norm_type), kernel, {.stride = args.stride, .ceil_mode = args.ceil_mode});
    double count = 1;
    for (const std::int64_t size : kernel) count *= static_cast<double>(size);
    return pow(mul(mul(sign(means), relu(abs(means))), count), 1 / norm_type);
  });
}

}  // namespace ballast
