// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/pool.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/args.h"
#include "ops/kernels.h"
#include "ops/native.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/pool.h"

namespace ballast {

using ops::data_of;
using ops::form;
using ops::kernels;
using ops::PoolSizes;

namespace {

void require_images(const char* op, const Tensor& x, std::size_t spatial) {
  if (spatial < 1 || spatial > 3)
    fail(Errc::invalid_argument, op, "pools 1 to 3 dimensions, not {}", spatial);
  if (x.rank() >= spatial) ops::require_measurable(op, x, spatial);
  if (x.rank() != spatial + 1 && x.rank() != spatial + 2) {
    fail(Errc::shape_mismatch, op,
         "{} is not [batch, channels, size…] or [channels, size…] with {} spatial dimensions", form(x),
         spatial);
  }
}

}  // namespace

PoolSizes ops::pool_sizes(const char* op, const Tensor& x, const Dims& kernel, const Dims& stride,
                          const Dims& padding, const Dims& dilation) {
  const std::size_t n = kernel.size();
  require_images(op, x, n);
  PoolSizes sizes{ops::spatial(op, "kernel", kernel, n, 1),
                  ops::spatial(op, "stride", stride.empty() ? kernel : stride, n, 1),
                  ops::spatial(op, "padding", padding, n, 0), ops::spatial(op, "dilation", dilation, n, 1)};
  for (std::size_t i = 0; i < n; ++i) {
    if (sizes.padding[i] * 2 > sizes.kernel[i]) {
      fail(Errc::invalid_argument, op, "padding {} is more than half of the kernel {}",
           to_string(sizes.padding), to_string(sizes.kernel));
    }
  }
  return sizes;
}

std::int64_t ops::pooled_size(const char* op, const Tensor& x, const PoolSizes& sizes, std::size_t i,
                              bool ceil_mode) {
  const std::int64_t in = x.shape()[x.rank() - sizes.kernel.size() + i];
  const std::int64_t window = sizes.dilation[i] * (sizes.kernel[i] - 1) + 1;
  const std::int64_t stride = sizes.stride[i];
  const std::int64_t reach = in + 2 * sizes.padding[i] - window + (ceil_mode ? stride - 1 : 0);
  std::int64_t out = reach < 0 ? 0 : reach / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + sizes.padding[i]) --out;  // the last window must begin inside
  if (out < 1)
    fail(Errc::shape_mismatch, op, "a window of {} does not fit into {} with padding {}", window, in,
         sizes.padding[i]);
  return out;
}

namespace {

// The inputs of one output position along one dimension: every `step`-th from begin before end, and what an
// average divides by.
struct Window {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t step;
  std::int64_t divisor;
};

using Windows = std::vector<Window>;  // one for each output position

enum class Pooling : std::uint8_t { max, average };

struct Plan {
  Pooling kind;
  std::array<Windows, 3> windows;  // depth, height, width
  std::int64_t divisor = 0;        // for all windows, when not 0
};

// [planes, depth, height, width, inner] from x's memory; `inner` channels lie together.
struct Images {
  std::int64_t planes;
  std::array<std::int64_t, 3> size;
  std::int64_t inner;
};

struct Job {
  const Plan& plan;
  Images in;
  std::array<std::int64_t, 3> out;
  const float* from;
  float* to;
};

template <class Visit>
void for_each_input(const Job& job, std::int64_t plane, const Window& d, const Window& h, const Window& w,
                    const Visit& visit) {
  const auto& size = job.in.size;
  for (std::int64_t z = d.begin; z < d.end; z += d.step) {
    for (std::int64_t y = h.begin; y < h.end; y += h.step) {
      const float* row = job.from + ((plane * size[0] + z) * size[1] + y) * size[2] * job.in.inner;
      for (std::int64_t x = w.begin; x < w.end; x += w.step) visit(row + x * job.in.inner);
    }
  }
}

// Wider ones the compiler would take apart: this file is built for every machine.
using Four [[gnu::vector_size(4 * sizeof(float))]] = float;
constexpr std::size_t kFours = ops::kBlock / 4;

// Eight channels, too few for a kernel's call to be worth it; the same sums and choices.
void pool_block(const Job& job, std::int64_t plane, const Window& d, const Window& h, const Window& w,
                float divisor, float* to) {
  const bool max = job.plan.kind == Pooling::max;
  Four values[kFours];
  for (Four& value : values) value = Four{} + (max ? -std::numeric_limits<float>::infinity() : 0.0F);
  for_each_input(job, plane, d, h, w, [&](const float* from) {
    Four x[kFours];
    std::memcpy(x, from, sizeof(x));
    for (std::size_t i = 0; i < kFours; ++i) {
      if (max)
        values[i] = ((x[i] > values[i]) | (x[i] != x[i])) ? x[i] : values[i];
      else
        values[i] += x[i];
    }
  });
  for (std::size_t i = 0; i < kFours && !max; ++i) values[i] /= divisor;
  std::memcpy(to, values, sizeof(values));
}

void pool_position(const Job& job, std::int64_t plane, const Window& d, const Window& h, const Window& w,
                   float* to) {
  const std::int64_t inner = job.in.inner;
  const bool max = job.plan.kind == Pooling::max;
  const auto divisor =
      static_cast<float>(job.plan.divisor != 0 ? job.plan.divisor : d.divisor * h.divisor * w.divisor);
  if (inner == 1) {
    float value = max ? -std::numeric_limits<float>::infinity() : 0;
    for_each_input(job, plane, d, h, w, [&](const float* x) {
      if (!max)
        value += *x;
      else if (*x > value || *x != *x)
        value = *x;
    });
    *to = max ? value : value / divisor;
    return;
  }
  if (inner == ops::kBlock) return pool_block(job, plane, d, h, w, divisor, to);
  std::fill(to, to + inner, max ? -std::numeric_limits<float>::infinity() : 0.0F);
  const auto kernel =
      kernels().binary[static_cast<std::size_t>(max ? ops::Binary::maximum : ops::Binary::add)];
  for_each_input(job, plane, d, h, w, [&](const float* x) { kernel(to, 1, x, 1, to, inner); });
  if (!max) kernels().binary[static_cast<std::size_t>(ops::Binary::div)](to, 1, &divisor, 0, to, inner);
}

void pool_images(const Job& job) {
  const auto& out = job.out;
  const std::int64_t row = out[2] * job.in.inner;
  ops::parallel(job.in.planes * out[0] * out[1], 4096 / (row + 1) + 1,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t plane = i / out[1] / out[0];
                    const Window& d = job.plan.windows[0][static_cast<std::size_t>(i / out[1] % out[0])];
                    const Window& h = job.plan.windows[1][static_cast<std::size_t>(i % out[1])];
                    float* to = job.to + i * row;
                    for (const Window& w : job.plan.windows[2]) {
                      pool_position(job, plane, d, h, w, to);
                      to += job.in.inner;
                    }
                  }
                });
}

// Of the pooled values. The largest of a window is one of its values, if it has any: that of none is minus
// infinity. Averages stay unknown, for what they are divided by may be anything.
double bound_of_pooled(const Tensor& x, const Plan& plan) {
  bool empty = plan.kind != Pooling::max;
  for (const Windows& windows : plan.windows)
    for (const Window& window : windows) empty = empty || window.begin >= window.end;
  return empty ? ops::kUnbounded : ops::bound_of(x);
}

// Pools the last `spatial` dimensions of x by `plan`.
Tensor pooled(const char* op, const Tensor& x, std::size_t spatial, Plan plan) {
  const double bound = bound_of_pooled(x, plan);
  if (const Tensor blocks = ops::blocks_of(x); blocks.defined() && spatial == 2) {
    // Images of one pixel are row-major as well, and what is made of them may be that alone.
    const Tensor out =
        ops::to_channels_last(ops::native_view(pooled(op, ops::row_major(blocks), spatial, std::move(plan))));
    return ops::from_blocks(out, {x.shape()[0], x.shape()[1], out.shape()[2], out.shape()[3]}, bound);
  }
  Shape shape = x.shape();
  const std::size_t first = x.rank() - spatial;
  Job job{plan, {1, {1, 1, 1}, 1}, {1, 1, 1}, nullptr, nullptr};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::size_t place = 3 - spatial + i;
    shape[first + i] = static_cast<std::int64_t>(plan.windows[place].size());
    job.in.size[place] = x.shape()[first + i];
  }
  for (std::size_t i = 0; i < 3; ++i) job.out[i] = static_cast<std::int64_t>(plan.windows[i].size());
  const Tensor native = ops::floats(op, ops::native_view(x));
  const bool channels_last = first == 2 && ops::is_channels_last(native);
  const Tensor in = channels_last ? native : ops::dense(native);
  Tensor out = channels_last ? ops::new_channels_last(DType::f32, shape) : ops::new_floats(shape);
  if (out.numel() > 0) {
    job.in.inner = channels_last ? shape[1] : 1;
    job.in.planes = ops::product(shape, 0, first) / job.in.inner;
    job.from = data_of(in);
    job.to = data_of(out);
    pool_images(job);
  }
  return ops::row_major(out, bound).to(x.dtype());
}

Plan empty_plan(Pooling kind) {
  return {kind, {Windows{{0, 1, 1, 1}}, Windows{{0, 1, 1, 1}}, Windows{{0, 1, 1, 1}}}};
}

template <Pooling kind>
Tensor adaptive_cpu(const Operation& op, const Tensor& x, const Dims& output) {
  require_images(op.name, x, output.size());
  Shape shape = x.shape();
  for (std::size_t i = 0; i < output.size(); ++i) {
    std::int64_t& size = shape[x.rank() - output.size() + i];
    const std::int64_t out = output[i] == -1 ? size : output[i];
    if (out < 0 || out > ops::kMostSpatial || (size == 0 && out > 0))
      fail(Errc::shape_mismatch, op.name, "{} cannot be pooled to {}", form(x), to_string(output));
    size = out;
  }
  static_cast<void>(ops::floats(op.name, x));  // what cannot be pooled is refused, empty or not
  // Before there is a window for every place of it.
  if (ops::product(shape, 0, shape.size()) == 0) return Tensor::zeros(x.dtype(), shape);
  Plan plan = empty_plan(kind);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::int64_t in = x.shape()[x.rank() - output.size() + i];
    const std::int64_t out = shape[x.rank() - output.size() + i];
    Windows windows;
    for (std::int64_t o = 0; o < out; ++o) {
      const std::int64_t begin = o * in / out;
      const std::int64_t end = ((o + 1) * in - 1) / out + 1;
      windows.push_back({begin, end, 1, end - begin});
    }
    plan.windows[3 - output.size() + i] = std::move(windows);
  }
  return pooled(op.name, x, output.size(), std::move(plan));
}

Dims all_ones(const char* op, const Tensor& x) {
  if (x.rank() < 3 || x.rank() > 5)
    fail(Errc::shape_mismatch, op, "{} is not [batch, channels, size…]", form(x));
  return Dims::filled(x.rank() - 2, 1);
}

Tensor max_pool_cpu(const Operation& op, const Tensor& x, const PoolSizes& sizes, bool ceil_mode) {
  Plan plan = empty_plan(Pooling::max);
  for (std::size_t i = 0; i < sizes.kernel.size(); ++i) {
    const std::int64_t in = x.shape()[x.rank() - sizes.kernel.size() + i];
    const std::int64_t out = ops::pooled_size(op.name, x, sizes, i, ceil_mode);
    Windows windows;
    for (std::int64_t o = 0; o < out; ++o) {
      std::int64_t begin = o * sizes.stride[i] - sizes.padding[i];
      const std::int64_t end = std::min(begin + (sizes.kernel[i] - 1) * sizes.dilation[i] + 1, in);
      while (begin < 0) begin += sizes.dilation[i];
      windows.push_back({begin, end, sizes.dilation[i], 1});
    }
    plan.windows[3 - sizes.kernel.size() + i] = std::move(windows);
  }
  return pooled(op.name, x, sizes.kernel.size(), std::move(plan));
}

Tensor avg_pool_cpu(const Operation& op, const Tensor& x, const PoolSizes& sizes, bool ceil_mode,
                    bool count_include_pad, std::int64_t divisor) {
  Plan plan = empty_plan(Pooling::average);
  plan.divisor = divisor;
  for (std::size_t i = 0; i < sizes.kernel.size(); ++i) {
    const std::int64_t in = x.shape()[x.rank() - sizes.kernel.size() + i];
    const std::int64_t out = ops::pooled_size(op.name, x, sizes, i, ceil_mode);
    Windows windows;
    for (std::int64_t o = 0; o < out; ++o) {
      const std::int64_t begin = o * sizes.stride[i] - sizes.padding[i];
      const std::int64_t end = std::min(begin + sizes.kernel[i], in + sizes.padding[i]);
      const std::int64_t inside = std::max<std::int64_t>(begin, 0);
      const std::int64_t last = std::min(end, in);
      windows.push_back({inside, last, 1, count_include_pad ? end - begin : last - inside});
    }
    plan.windows[3 - sizes.kernel.size() + i] = std::move(windows);
  }
  return pooled(op.name, x, sizes.kernel.size(), std::move(plan));
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const ops::PoolSizes&, bool)> max_pool = {
    about("max_pool", {"x"}, {"ceil_mode"}, forms::pooled), {max_pool_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const ops::PoolSizes&, bool, bool, std::int64_t)> avg_pool =
    {about("avg_pool", {"x"}, {"ceil_mode", "count_include_pad", "divisor"}, forms::pooled), {avg_pool_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const Dims&)> adaptive_avg_pool = {
    about("adaptive_avg_pool", {"x"}, {"output"}, forms::adaptive_pool), {adaptive_cpu<Pooling::average>}};
constinit const OperationOf<Tensor(const Tensor&, const Dims&)> adaptive_max_pool = {
    about("adaptive_max_pool", {"x"}, {"output"}, forms::adaptive_pool), {adaptive_cpu<Pooling::max>}};

}  // namespace operations

Tensor max_pool(const Tensor& x, const Dims& kernel, const MaxPoolArgs& args) {
  return run(operations::max_pool, x,
             ops::pool_sizes("max_pool", x, kernel, args.stride, args.padding, args.dilation),
             args.ceil_mode);
}

Tensor avg_pool(const Tensor& x, const Dims& kernel, const AvgPoolArgs& args) {
  if (args.divisor_override == 0) fail(Errc::invalid_argument, "avg_pool", "divisor_override is 0");
  return run(operations::avg_pool, x, ops::pool_sizes("avg_pool", x, kernel, args.stride, args.padding, {1}),
             args.ceil_mode, args.count_include_pad, args.divisor_override.value_or(0));
}

Tensor adaptive_avg_pool(const Tensor& x, const Dims& output) {
  return run(operations::adaptive_avg_pool, x, output);
}

Tensor adaptive_max_pool(const Tensor& x, const Dims& output) {
  return run(operations::adaptive_max_pool, x, output);
}

Tensor global_avg_pool(const Tensor& x) {
  return adaptive_avg_pool(x, all_ones("global_avg_pool", x));
}

Tensor global_max_pool(const Tensor& x) {
  return adaptive_max_pool(x, all_ones("global_max_pool", x));
}

}  // namespace ballast
