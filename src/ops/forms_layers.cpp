// SPDX-License-Identifier: Apache-2.0
// Products, convolutions, windows, norms, recurrent layers. They compute with F16, BF16 and F32, some with
// F64.
#include <cmath>

#include "base/fail.h"
#include "ops/args.h"
#include "ops/forms.h"

namespace ballast::ops::forms {
namespace {

bool is_layer_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// Convolutions and linear compute with F64 too; parameters may be narrower than x, not F64 beside others.
bool takes_wide(const OperationCall& call) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.has(i)) continue;
    const bool wide = call.dtype(i) == DType::f64 && call.dtype(0) == DType::f64;
    if (!wide && !is_layer_dtype(call.dtype(i))) return false;
  }
  return true;
}

// What is not told here is left to the operation, which refuses it in its own words.
bool plain_images(const OperationCall& call, std::size_t spatial) {
  const std::size_t rank = call.shape(0).size();
  return is_layer_dtype(call.dtype(0)) && (rank == spatial + 1 || rank == spatial + 2);
}

}  // namespace

std::optional<Forms> linear(const OperationCall& call) {
  const Shape& weight = call.shape(1);
  Shape shape = call.shape(0);
  if (!takes_wide(call) || weight.size() != 2 || shape.empty() || shape[shape.size() - 1] != weight[0] ||
      (call.has(2) && !(call.shape(2) == Shape{weight[1]})))
    return std::nullopt;
  shape[shape.size() - 1] = weight[1];
  return Forms{{call.dtype(0), shape}};
}

static Shape without_last_two(const Shape& shape) {
  return ShapeView(shape.data(), shape.size() - 2);
}

std::optional<Forms> matmul(const OperationCall& call) {
  Shape a = call.shape(0);
  Shape b = call.shape(1);
  if (a.empty() || b.empty() || call.dtype(0) != call.dtype(1) || !takes_wide(call)) return std::nullopt;
  if (a.size() == 1) a.insert(0, 1);
  if (b.size() == 1) b.push_back(1);
  if (a[a.size() - 1] != b[b.size() - 2]) return std::nullopt;
  Shape shape = broadcast(call.name(), without_last_two(a), without_last_two(b));
  if (call.shape(0).size() > 1) shape.push_back(a[a.size() - 2]);
  if (call.shape(1).size() > 1) shape.push_back(b[b.size() - 1]);
  return Forms{{call.dtype(0), shape}};
}

// Both are recorded after their sizes were checked.
std::optional<Forms> conv(const OperationCall& call) {
  const Shape& x = call.shape(0);
  const Shape& weight = call.shape(1);
  if (!takes_wide(call) || (call.has(2) && !(call.shape(2) == Shape{weight[0]}))) return std::nullopt;
  const Dims& stride = call.list("stride");
  const Dims& dilation = call.list("dilation");
  const Dims& before = call.list("before");
  const Dims& after = call.list("after");
  Shape shape = {x[0], weight[0]};
  for (std::size_t i = 0; i < stride.size(); ++i) {
    const std::int64_t reach = x[i + 2] + before[i] + after[i] - dilation[i] * (weight[i + 2] - 1) - 1;
    if (reach < 0) return std::nullopt;
    shape.push_back(reach / stride[i] + 1);
  }
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> conv_transpose(const OperationCall& call) {
  const Shape& x = call.shape(0);
  const Shape& weight = call.shape(1);
  const std::int64_t channels = weight[1] * call.number("groups");
  if (!takes_wide(call) || (call.has(2) && !(call.shape(2) == Shape{channels}))) return std::nullopt;
  const Dims& stride = call.list("stride");
  const Dims& dilation = call.list("dilation");
  const Dims& before = call.list("before");
  const Dims& after = call.list("after");
  Shape shape = {x[0], channels};
  for (std::size_t i = 0; i < stride.size(); ++i)
    shape.push_back((x[i + 2] - 1) * stride[i] + dilation[i] * (weight[i + 2] - 1) + 1 - before[i] -
                    after[i]);
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> pooled(const OperationCall& call) {
  const Dims& dilation = call.list("dilation");
  const Dims& kernel = call.list("kernel");
  const Dims& stride = call.list("stride");
  const Dims& padding = call.list("padding");
  const bool up = call.number("ceil_mode") != 0;
  if (!plain_images(call, kernel.size())) return std::nullopt;
  Shape shape = call.shape(0);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    std::int64_t& size = shape[shape.size() - kernel.size() + i];
    const std::int64_t reach =
        size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 + (up ? stride[i] - 1 : 0);
    std::int64_t out = reach < 0 ? 0 : reach / stride[i] + 1;
    if (up && (out - 1) * stride[i] >= size + padding[i]) --out;  // the last window must begin inside
    if (out < 1) return std::nullopt;
    size = out;
  }
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> pooled_with_indices(const OperationCall& call) {
  std::optional<Forms> forms = pooled(call);
  if (forms) forms->push_back({DType::i64, forms->front().shape()});
  return forms;
}

std::optional<Forms> roi_align(const OperationCall& call) {
  const Shape& x = call.shape(0);
  const Shape& boxes = call.shape(1);
  const Dims& output = call.list("output_size");
  const DType dtype = call.dtype(0);
  if (!(is_layer_dtype(dtype) || dtype == DType::f64) || call.dtype(1) != dtype || x.size() != 4 ||
      boxes.size() != 2 || boxes[1] != 5 || !std::isfinite(call.real("spatial_scale")))
    return std::nullopt;
  const Dims both = spatial(call.name(), "output_size", output, 2, 1);
  const Shape shape = {boxes[0], x[1], both[0], both[1]};
  // Of which image a box is, and whether it is anywhere, only its values tell.
  return try_numel(shape) != 0 && try_numel(x) == 0 ? std::nullopt : std::optional(Forms{{dtype, shape}});
}

std::optional<Forms> adaptive_pool(const OperationCall& call) {
  const Dims& output = call.list("output");
  if (!plain_images(call, output.size())) return std::nullopt;
  Shape shape = call.shape(0);
  for (std::size_t i = 0; i < output.size(); ++i) {
    std::int64_t& size = shape[shape.size() - output.size() + i];
    if (size == 0 || output[i] < -1 || output[i] > kMostSpatial) return std::nullopt;
    if (output[i] != -1) size = output[i];
  }
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> resize(const OperationCall& call) {
  const Dims& wanted = call.list("size");
  const std::vector<double>& scale = call.reals("scale");
  Shape shape = call.shape(0);
  if (!is_layer_dtype(call.dtype(0)) || shape.size() < 3 || shape.size() > 5 ||
      wanted.empty() == scale.empty() || (call.number("mode") == 2 && shape.size() != 4) ||  // cubic
      (call.number("mode") == 0 && call.number("align_corners") != 0))
    return std::nullopt;
  const std::size_t given = wanted.empty() ? scale.size() : wanted.size();
  if (given != 1 && given != shape.size() - 2) return std::nullopt;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    const std::size_t which = given == 1 ? 0 : i - 2;
    const double size = wanted.empty() ? std::floor(static_cast<double>(shape[i]) * scale[which])
                                       : static_cast<double>(wanted[which]);
    if (shape[i] < 1 || !(size >= 1 && size <= static_cast<double>(kMostSpatial))) return std::nullopt;
    shape[i] = static_cast<std::int64_t>(size);
  }
  return Forms{{call.dtype(0), shape}};
}

// Query, key and value fit each other: that was checked before.
std::optional<Forms> attention(const OperationCall& call) {
  const Shape& query = call.shape(0);
  const Shape& key = call.shape(1);
  const Shape& value = call.shape(2);
  for (std::size_t i = 0; i < 3; ++i)
    if (!is_layer_dtype(call.dtype(i))) return std::nullopt;
  Shape shape = broadcast(call.name(), broadcast(call.name(), without_last_two(query), without_last_two(key)),
                          without_last_two(value));
  if (call.has(3)) {
    Shape scores = shape;
    scores.push_back(query[query.size() - 2]);
    scores.push_back(key[key.size() - 2]);
    if (!(broadcast(call.name(), scores, call.shape(3)) == scores)) return std::nullopt;
  }
  shape.push_back(query[query.size() - 2]);
  shape.push_back(value[value.size() - 1]);
  return Forms{{call.dtype(0), shape}};
}

static bool fits(const OperationCall& call, std::size_t i, const Shape& shape) {
  return !call.has(i) || call.shape(i) == shape;
}

namespace {

std::optional<Forms> norm_of_channels(const OperationCall& call, std::size_t least_rank) {
  const Shape& x = call.shape(0);
  if (!is_layer_dtype(call.dtype(0)) || x.size() < least_rank) return std::nullopt;
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (!fits(call, i, {x[1]})) return std::nullopt;
  return Forms{{call.dtype(0), x}};
}

}  // namespace

std::optional<Forms> batch_norm(const OperationCall& call) {
  return norm_of_channels(call, 2);
}

std::optional<Forms> group_norm(const OperationCall& call) {
  const std::int64_t groups = call.number("groups");
  const Shape& x = call.shape(0);
  if (groups < 1 || x.size() < 2 || x[1] % groups != 0) return std::nullopt;
  return norm_of_channels(call, 2);
}

std::optional<Forms> instance_norm(const OperationCall& call) {
  return norm_of_channels(call, 3);
}

std::optional<Forms> norm_of_last(const OperationCall& call) {
  const Shape& x = call.shape(0);
  const Dims& normalized = call.list("normalized");
  if (!is_layer_dtype(call.dtype(0)) || normalized.empty() || normalized.size() > x.size())
    return std::nullopt;
  const std::size_t first = x.size() - normalized.size();
  if (!(Shape(ShapeView(x.data() + first, normalized.size())) == normalized)) return std::nullopt;
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (!fits(call, i, normalized)) return std::nullopt;
  return Forms{{call.dtype(0), x}};
}

std::optional<Forms> grid_sample(const OperationCall& call) {
  const Shape& x = call.shape(0);
  const Shape& grid = call.shape(1);
  const std::size_t rank = x.size();
  if ((rank != 4 && !(rank == 5 && call.number("mode") != 2)) || grid.size() != rank || grid[0] != x[0] ||
      grid[rank - 1] != static_cast<std::int64_t>(rank) - 2 || product(x, 2, rank) == 0)
    return std::nullopt;
  if (call.dtype(0) != call.dtype(1) || !(is_layer_dtype(call.dtype(0)) || call.dtype(0) == DType::f64))
    return std::nullopt;
  Shape shape = {x[0], x[1]};
  for (std::size_t i = 1; i + 1 < rank; ++i) shape.push_back(grid[i]);
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> dft(const OperationCall& call) {
  Shape shape = call.shape(0);
  const std::size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] < 1 || shape[rank - 1] > 2 || shape[rank - 2] < 1) return std::nullopt;
  if (!is_layer_dtype(call.dtype(0)) && call.dtype(0) != DType::f64) return std::nullopt;
  if (call.number("onesided") != 0) shape[rank - 2] = shape[rank - 2] / 2 + 1;
  shape[rank - 1] = 2;
  return Forms{{call.dtype(0), shape}};
}

namespace {

// Inputs: x, hidden, cell, then five tensors for each set of weights.
std::optional<Forms> recurrent(const OperationCall& call, std::int64_t gates) {
  const Shape& x = call.shape(0);
  const std::size_t sets = (call.inputs.size() - 3) / 5;
  const std::int64_t directions = call.number("bidirectional") != 0 ? 2 : 1;
  const bool turned = call.number("batch_first") != 0;
  if (x.size() != 3 || !is_layer_dtype(call.dtype(0)) || x[turned ? 1 : 0] == 0 || sets == 0)
    return std::nullopt;
  std::int64_t in = x[2];
  for (std::size_t i = 0; i < sets; ++i) {
    if (call.has(3 + 5 * i + 4)) return std::nullopt;  // a projection: seldom, so computed
    const Shape& weight = call.shape(3 + 5 * i);
    if (weight.size() != 2 || weight[0] != in) return std::nullopt;
    if (static_cast<std::int64_t>(i + 1) % directions == 0) in = weight[1] / gates * directions;
  }
  const std::int64_t hidden = call.shape(3)[1] / gates;
  const Shape state = {static_cast<std::int64_t>(sets), x[turned ? 0 : 1], hidden};
  if (!fits(call, 1, state) || !fits(call, 2, state)) return std::nullopt;
  const DType dtype = call.dtype(0);
  Forms forms = {{dtype, Shape{x[0], x[1], hidden * directions}}, {dtype, state}, {}};
  if (gates == 4) forms[2] = Tensor(dtype, state);
  return forms;
}

}  // namespace

std::optional<Forms> lstm(const OperationCall& call) {
  return recurrent(call, 4);
}

std::optional<Forms> gru(const OperationCall& call) {
  return recurrent(call, 3);
}

std::optional<Forms> rnn(const OperationCall& call) {
  return recurrent(call, 1);
}

}  // namespace ballast::ops::forms
