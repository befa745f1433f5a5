// SPDX-License-Identifier: Apache-2.0
// Products, convolutions, windows, norms, recurrent layers. They compute with F16, BF16 and F32.
#include <cmath>

#include "base/fail.h"
#include "graph/forms.h"
#include "ops/args.h"

namespace ballast::graph {
namespace {

bool is_layer_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// What is not told here is left to the operation, which refuses it in its own words.
bool plain_images(const Asked& asked, std::size_t spatial) {
  const std::size_t rank = asked.shape(0).size();
  return is_layer_dtype(asked.dtype(0)) && (rank == spatial + 1 || rank == spatial + 2);
}

std::optional<Forms> linear(const Asked& asked) {
  const Shape& weight = asked.shape(1);
  Shape shape = asked.shape(0);
  if (!is_layer_dtype(asked.dtype(0)) || weight.size() != 2 || shape.empty() ||
      shape[shape.size() - 1] != weight[0] || (asked.has(2) && !(asked.shape(2) == Shape{weight[1]})))
    return std::nullopt;
  shape[shape.size() - 1] = weight[1];
  return Forms{{asked.dtype(0), shape}};
}

Shape without_last_two(const Shape& shape) {
  return ShapeView(shape.data(), shape.size() - 2);
}

std::optional<Forms> matmul(const Asked& asked) {
  Shape a = asked.shape(0);
  Shape b = asked.shape(1);
  if (a.empty() || b.empty() || asked.dtype(0) != asked.dtype(1) || !is_layer_dtype(asked.dtype(0)))
    return std::nullopt;
  if (a.size() == 1) a.insert(0, 1);
  if (b.size() == 1) b.push_back(1);
  if (a[a.size() - 1] != b[b.size() - 2]) return std::nullopt;
  Shape shape = ops::broadcast(asked.op, without_last_two(a), without_last_two(b));
  if (asked.shape(0).size() > 1) shape.push_back(a[a.size() - 2]);
  if (asked.shape(1).size() > 1) shape.push_back(b[b.size() - 1]);
  return Forms{{asked.dtype(0), shape}};
}

// Both are recorded after their sizes were checked.
std::optional<Forms> conv(const Asked& asked) {
  const Shape& x = asked.shape(0);
  const Shape& weight = asked.shape(1);
  if (!is_layer_dtype(asked.dtype(0)) || (asked.has(2) && !(asked.shape(2) == Shape{weight[0]})))
    return std::nullopt;
  const Dims& stride = asked.list("stride");
  const Dims& dilation = asked.list("dilation");
  const Dims& before = asked.list("before");
  const Dims& after = asked.list("after");
  Shape shape = {x[0], weight[0]};
  for (std::size_t i = 0; i < stride.size(); ++i) {
    const std::int64_t reach = x[i + 2] + before[i] + after[i] - dilation[i] * (weight[i + 2] - 1) - 1;
    if (reach < 0) return std::nullopt;
    shape.push_back(reach / stride[i] + 1);
  }
  return Forms{{asked.dtype(0), shape}};
}

std::optional<Forms> conv_transpose(const Asked& asked) {
  const Shape& x = asked.shape(0);
  const Shape& weight = asked.shape(1);
  const std::int64_t channels = weight[1] * asked.number("groups");
  if (!is_layer_dtype(asked.dtype(0)) || (asked.has(2) && !(asked.shape(2) == Shape{channels})))
    return std::nullopt;
  const Dims& stride = asked.list("stride");
  const Dims& dilation = asked.list("dilation");
  const Dims& before = asked.list("before");
  const Dims& after = asked.list("after");
  Shape shape = {x[0], channels};
  for (std::size_t i = 0; i < stride.size(); ++i)
    shape.push_back((x[i + 2] - 1) * stride[i] + dilation[i] * (weight[i + 2] - 1) + 1 - before[i] -
                    after[i]);
  return Forms{{asked.dtype(0), shape}};
}

std::optional<Forms> pooled(const Asked& asked, const Dims& dilation) {
  const Dims& kernel = asked.list("kernel");
  const Dims& stride = asked.list("stride");
  const Dims& padding = asked.list("padding");
  const bool up = asked.number("ceil_mode") != 0;
  if (!plain_images(asked, kernel.size())) return std::nullopt;
  Shape shape = asked.shape(0);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    std::int64_t& size = shape[shape.size() - kernel.size() + i];
    const std::int64_t reach =
        size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 + (up ? stride[i] - 1 : 0);
    std::int64_t out = reach < 0 ? 0 : reach / stride[i] + 1;
    if (up && (out - 1) * stride[i] >= size + padding[i]) --out;  // the last window must begin inside
    if (out < 1) return std::nullopt;
    size = out;
  }
  return Forms{{asked.dtype(0), shape}};
}

std::optional<Forms> max_pool(const Asked& asked) {
  return pooled(asked, asked.list("dilation"));
}

std::optional<Forms> avg_pool(const Asked& asked) {
  return pooled(asked, Dims::filled(asked.list("kernel").size(), 1));
}

std::optional<Forms> adaptive_pool(const Asked& asked) {
  const Dims& output = asked.list("output");
  if (!plain_images(asked, output.size())) return std::nullopt;
  Shape shape = asked.shape(0);
  for (std::size_t i = 0; i < output.size(); ++i) {
    std::int64_t& size = shape[shape.size() - output.size() + i];
    if (size == 0 || output[i] < -1 || output[i] > ops::kMostSpatial) return std::nullopt;
    if (output[i] != -1) size = output[i];
  }
  return Forms{{asked.dtype(0), shape}};
}

std::optional<Forms> resize(const Asked& asked) {
  const Dims& wanted = asked.list("size");
  const std::vector<double>& scale = asked.reals("scale");
  Shape shape = asked.shape(0);
  if (!is_layer_dtype(asked.dtype(0)) || shape.size() < 3 || shape.size() > 5 ||
      wanted.empty() == scale.empty() || (asked.number("mode") == 2 && shape.size() != 4) ||  // cubic
      (asked.number("mode") == 0 && asked.number("align_corners") != 0))
    return std::nullopt;
  const std::size_t given = wanted.empty() ? scale.size() : wanted.size();
  if (given != 1 && given != shape.size() - 2) return std::nullopt;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    const std::size_t which = given == 1 ? 0 : i - 2;
    const double size = wanted.empty() ? std::floor(static_cast<double>(shape[i]) * scale[which])
                                       : static_cast<double>(wanted[which]);
    if (shape[i] < 1 || !(size >= 1 && size <= static_cast<double>(ops::kMostSpatial))) return std::nullopt;
    shape[i] = static_cast<std::int64_t>(size);
  }
  return Forms{{asked.dtype(0), shape}};
}

// Query, key and value fit each other: that was checked before.
std::optional<Forms> attention(const Asked& asked) {
  const Shape& query = asked.shape(0);
  const Shape& key = asked.shape(1);
  const Shape& value = asked.shape(2);
  for (std::size_t i = 0; i < 3; ++i)
    if (!is_layer_dtype(asked.dtype(i))) return std::nullopt;
  Shape shape =
      ops::broadcast(asked.op, ops::broadcast(asked.op, without_last_two(query), without_last_two(key)),
                     without_last_two(value));
  if (asked.has(3)) {
    Shape scores = shape;
    scores.push_back(query[query.size() - 2]);
    scores.push_back(key[key.size() - 2]);
    if (!(ops::broadcast(asked.op, scores, asked.shape(3)) == scores)) return std::nullopt;
  }
  shape.push_back(query[query.size() - 2]);
  shape.push_back(value[value.size() - 1]);
  return Forms{{asked.dtype(0), shape}};
}

bool fits(const Asked& asked, std::size_t i, const Shape& shape) {
  return !asked.has(i) || asked.shape(i) == shape;
}

std::optional<Forms> norm_of_channels(const Asked& asked) {
  const Shape& x = asked.shape(0);
  const bool instance = std::string_view(asked.op) == "instance_norm";
  if (!is_layer_dtype(asked.dtype(0)) || x.size() < (instance ? 3 : 2)) return std::nullopt;
  for (std::size_t i = 1; i < asked.inputs.size(); ++i)
    if (!fits(asked, i, {x[1]})) return std::nullopt;
  if (std::string_view(asked.op) == "group_norm" &&
      (asked.number("groups") < 1 || x[1] % asked.number("groups") != 0))
    return std::nullopt;
  if (std::string_view(asked.op) == "batch_norm" && (!asked.has(1) || !asked.has(2))) return std::nullopt;
  return Forms{{asked.dtype(0), x}};
}

std::optional<Forms> norm_of_last(const Asked& asked) {
  const Shape& x = asked.shape(0);
  const Dims& normalized = asked.list("normalized");
  if (!is_layer_dtype(asked.dtype(0)) || normalized.empty() || normalized.size() > x.size())
    return std::nullopt;
  const std::size_t first = x.size() - normalized.size();
  if (!(Shape(ShapeView(x.data() + first, normalized.size())) == normalized)) return std::nullopt;
  for (std::size_t i = 1; i < asked.inputs.size(); ++i)
    if (!fits(asked, i, normalized)) return std::nullopt;
  return Forms{{asked.dtype(0), x}};
}

// Inputs: x, hidden, cell, then five tensors for each set of weights.
std::optional<Forms> recurrent(const Asked& asked) {
  const Shape& x = asked.shape(0);
  const std::size_t sets = (asked.inputs.size() - 3) / 5;
  const std::int64_t directions = asked.number("bidirectional") != 0 ? 2 : 1;
  const bool turned = asked.number("batch_first") != 0;
  const bool lstm = std::string_view(asked.op) == "lstm";
  if (x.size() != 3 || !is_layer_dtype(asked.dtype(0)) || x[turned ? 1 : 0] == 0 || sets == 0)
    return std::nullopt;
  const std::int64_t gates = lstm ? 4 : (std::string_view(asked.op) == "gru" ? 3 : 1);
  std::int64_t in = x[2];
  for (std::size_t i = 0; i < sets; ++i) {
    if (asked.has(3 + 5 * i + 4)) return std::nullopt;  // a projection: seldom, so computed
    const Shape& weight = asked.shape(3 + 5 * i);
    if (weight.size() != 2 || weight[0] != in) return std::nullopt;
    if (static_cast<std::int64_t>(i + 1) % directions == 0) in = weight[1] / gates * directions;
  }
  const std::int64_t hidden = asked.shape(3)[1] / gates;
  const Shape state = {static_cast<std::int64_t>(sets), x[turned ? 0 : 1], hidden};
  if (!fits(asked, 1, state) || !fits(asked, 2, state)) return std::nullopt;
  const DType dtype = asked.dtype(0);
  Forms forms = {{dtype, Shape{x[0], x[1], hidden * directions}}, {dtype, state}, {}};
  if (lstm) forms[2] = Tensor(dtype, state);
  return forms;
}

}  // namespace

void add_layer_forms(FormTable& table) {
  table.insert({{"linear", linear},
                {"matmul", matmul},
                {"conv", conv},
                {"conv_transpose", conv_transpose},
                {"max_pool", max_pool},
                {"avg_pool", avg_pool},
                {"adaptive_avg_pool", adaptive_pool},
                {"adaptive_max_pool", adaptive_pool},
                {"resize", resize},
                {"scaled_dot_product_attention", attention},
                {"batch_norm", norm_of_channels},
                {"group_norm", norm_of_channels},
                {"instance_norm", norm_of_channels},
                {"layer_norm", norm_of_last},
                {"rms_norm", norm_of_last},
                {"lstm", recurrent},
                {"gru", recurrent},
                {"rnn", recurrent}});
}

}  // namespace ballast::graph
