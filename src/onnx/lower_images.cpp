// SPDX-License-Identifier: Apache-2.0
// Pooling and resizing.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// [channels, size…] is a batch of one.
template <class Work>
void batched(const Call& call, std::size_t spatial, const Work& work) {
  const bool alone = call.value(0).shape.size() == spatial + 1;
  const std::string x = alone ? call.to.unsqueeze(call.floats(0), {0}) : call.floats(0);
  const std::string y = work(x);
  call.result(alone ? call.to.squeeze(y, {0}) : y, DType::f32);
}

// The size of spatial dimension i of x, which must be a number.
std::int64_t size_in(const Call& call, std::size_t spatial, std::size_t i, const char* why) {
  const GraphValue& x = call.value(0);
  const SizeExpr& size = x.sizes[x.sizes.size() - spatial + i];
  if (!size.is_constant())
    call.refuse(fmt::format("{} needs a size that is a number, not {}", why, to_string(size)));
  return size.constant;
}

// Rounding up is said as padding at the end, which all runtimes read alike: as much as the last window may
// want, whatever the size, and not so much that a window would begin in it.
Dims end_padding(const Call& call, const Dims& kernel, const Dims& dilation) {
  const Dims stride = call.list("stride");
  Dims after = call.list("padding");
  if (call.number("ceil_mode") == 0) return after;
  for (std::size_t i = 0; i < kernel.size(); ++i)
    after[i] = std::min(after[i] + stride[i] - 1, dilation[i] * (kernel[i] - 1));
  return after;
}

// Padding before and behind as a node of its own.
std::string padded(const Call& call, const std::string& x, const Dims& before, const Dims& after,
                   double value) {
  Dims pads = {0, 0};
  for (const std::int64_t amount : before) pads.push_back(amount);
  pads.push_back(0);
  pads.push_back(0);
  for (const std::int64_t amount : after) pads.push_back(amount);
  return call.to.node("Pad", {x, call.to.ints(pads), call.to.real(value)},
                      {{"mode", std::string("constant")}});
}

Attributes window(const Call& call, const Dims& kernel, const Dims& before, const Dims& after) {
  Dims pads = before;
  for (const std::int64_t pad : after) pads.push_back(pad);
  return {{"kernel_shape", kernel}, {"strides", call.list("stride")}, {"pads", pads}};
}

bool any_beyond(const Dims& amounts, const Dims& limits) {
  for (std::size_t i = 0; i < amounts.size(); ++i)
    if (amounts[i] > limits[i]) return true;
  return false;
}

// What MaxPool is told, and whether its padding must be a node of its own.
struct MaxWindow {
  Attributes attributes;
  Dims before;
  Dims after;
  bool apart;
};

MaxWindow max_window(const Call& call) {
  const Dims kernel = call.list("kernel");
  const Dims dilation = call.list("dilation");
  const Dims before = call.list("padding");
  const Dims after = end_padding(call, kernel, dilation);
  Dims most = kernel;
  for (std::int64_t& size : most) --size;  // what runtimes take
  const bool apart = any_beyond(after, most);
  const Dims none = Dims::filled(kernel.size(), 0);
  Attributes attributes = apart ? window(call, kernel, none, none) : window(call, kernel, before, after);
  attributes.push_back({"dilations", dilation});
  return {std::move(attributes), before, after, apart};
}

void max_pool(const Call& call) {
  const MaxWindow window = max_window(call);
  batched(call, window.before.size(), [&](const std::string& x) {
    return call.to.node("MaxPool", {window.apart ? padded(call, x, window.before, window.after, kLowest) : x},
                        window.attributes);
  });
}

// ONNX counts the places of all images together, and not in padding that is a node of its own.
void max_pool_with_indices(const Call& call) {
  const MaxWindow window = max_window(call);
  if (window.apart) call.refuse("indices of a pool whose ceil_mode needs more padding than MaxPool takes");
  Lowering& to = call.to;
  const GraphValue& x = call.value(0);
  const std::size_t spatial = window.before.size();
  const bool alone = x.shape.size() == spatial + 1;
  const std::string in = alone ? to.unsqueeze(call.floats(0), {0}) : call.floats(0);
  const std::vector<std::string> both = to.nodes("MaxPool", {in}, window.attributes, 2);
  std::string places = to.size(x.sizes[x.sizes.size() - spatial]);
  for (std::size_t i = 1; i < spatial; ++i)
    places = to.node("Mul", {places, to.size(x.sizes[x.sizes.size() - spatial + i])});
  const std::string own = to.node("Mod", {both[1], places});
  call.result(alone ? to.squeeze(both[0], {0}) : both[0], DType::f32, 0);
  call.result(alone ? to.squeeze(own, {0}) : own, DType::i64, 1);
}

// The image's number stands before the corners.
void roi_align(const Call& call) {
  Lowering& to = call.to;
  const bool aligned = call.number("aligned") != 0;
  if (aligned && to.opset() < 16) call.refuse("RoiAlign with `aligned` needs opset 16");
  const DType dtype = call.value(0).dtype == DType::f64 ? DType::f64 : DType::f32;
  const Dims output = call.list("output_size");
  Attributes attributes = {{"mode", std::string("avg")},
                           {"output_height", output[0]},
                           {"output_width", output[output.size() - 1]},
                           {"sampling_ratio", std::max<std::int64_t>(call.number("sampling_ratio"), 0)},
                           {"spatial_scale", call.real("spatial_scale")}};
  if (to.opset() >= 16)
    attributes.push_back(
        {"coordinate_transformation_mode", std::string(aligned ? "half_pixel" : "output_half_pixel")});
  const std::string boxes = call.in(1, dtype);
  const std::string images = to.cast(to.squeeze(to.slice(boxes, 1, 0, 1), {1}), dtype, DType::i64);
  call.result(to.node("RoiAlign", {call.in(0, dtype), to.slice(boxes, 1, 1, 5), images}, attributes), dtype);
}

void avg_pool(const Call& call) {
  const Dims kernel = call.list("kernel");
  const std::int64_t divisor = call.number("divisor");
  const Dims none = Dims::filled(kernel.size(), 0);
  Dims before = call.list("padding");
  Dims after = end_padding(call, kernel, Dims::filled(kernel.size(), 1));
  bool counts_padding = call.number("count_include_pad") != 0 || divisor != 0;
  // What lies beyond the padding asked for is not counted, so that which counts becomes part of the image.
  const bool beyond = divisor == 0 && counts_padding && !(after == before);
  const bool apart = beyond && !(before == none);
  const Dims counted = before;
  if (beyond) {
    for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
    before = none;
    counts_padding = false;
  }
  Attributes attributes = window(call, kernel, before, after);
  attributes.push_back({"count_include_pad", std::int64_t{counts_padding}});
  batched(call, kernel.size(), [&](const std::string& x) {
    std::string mean =
        call.to.node("AveragePool", {apart ? padded(call, x, counted, counted, 0) : x}, attributes);
    if (divisor == 0) return mean;
    double count = 1;
    for (const std::int64_t size : kernel) count *= static_cast<double>(size);
    return call.to.node("Mul", {mean, call.to.real(count / static_cast<double>(divisor))});
  });
}

// Averages over windows of uneven size, one dimension at a time, as a product with a matrix.
std::string uneven_average(const Call& call, const std::string& x, std::size_t axis, std::size_t rank,
                           std::int64_t in, std::int64_t out) {
  Tensor weights = Tensor::zeros(DType::f32, {in, out});
  auto* to = reinterpret_cast<float*>(weights.mutable_data());
  for (std::int64_t o = 0; o < out; ++o) {
    const std::int64_t begin = o * in / out;
    const std::int64_t end = ((o + 1) * in - 1) / out + 1;
    for (std::int64_t i = begin; i < end; ++i) to[i * out + o] = 1 / static_cast<float>(end - begin);
  }
  const std::string matrix = call.to.constant(weights);
  if (axis == rank - 1) return call.to.node("MatMul", {x, matrix});
  Dims order;
  for (std::size_t i = 0; i < rank; ++i)
    order.push_back(static_cast<std::int64_t>(i == axis ? rank - 1 : (i == rank - 1 ? axis : i)));
  const std::string turned = call.to.node("Transpose", {x}, {{"perm", order}});
  return call.to.node("Transpose", {call.to.node("MatMul", {turned, matrix})}, {{"perm", order}});
}

void adaptive_pool(const Call& call, bool average) {
  const Dims output = call.list("output");
  const std::size_t spatial = output.size();
  if (std::all_of(output.begin(), output.end(), [](std::int64_t size) { return size == 1; })) {
    return batched(call, spatial, [&](const std::string& x) {
      return call.to.node(average ? "GlobalAveragePool" : "GlobalMaxPool", {x});
    });
  }
  Dims kernel;
  bool even = true;
  std::vector<std::int64_t> in;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (output[i] == -1) call.refuse("an adaptive pool that keeps one dimension");
    in.push_back(size_in(call, spatial, i, "an adaptive pool to more than 1"));
    out.push_back(output[i]);
    even = even && in[i] % out[i] == 0;
    kernel.push_back(std::max<std::int64_t>(in[i] / out[i], 1));
  }
  if (!even && !average) call.refuse("an adaptive maximum over windows of uneven size");
  batched(call, spatial, [&](std::string x) {
    if (even)
      return call.to.node(average ? "AveragePool" : "MaxPool", {x},
                          {{"kernel_shape", kernel}, {"strides", kernel}});
    for (std::size_t i = 0; i < spatial; ++i) x = uneven_average(call, x, i + 2, spatial + 2, in[i], out[i]);
    return x;
  });
}

void adaptive_avg_pool(const Call& call) {
  adaptive_pool(call, true);
}

void adaptive_max_pool(const Call& call) {
  adaptive_pool(call, false);
}

// The factor that gives what resize() gives: where the size stays or doubles, it does not always look at it.
double resize_factor(std::int64_t mode, std::size_t rank, std::int64_t size, double factor) {
  const double out = std::floor(static_cast<double>(size) * factor);
  const bool flat_nearest = mode == 0 && rank == 4;
  if (out == static_cast<double>(size) && (mode == 1 || flat_nearest)) return 1;
  return out == 2 * static_cast<double>(size) && flat_nearest ? 2 : factor;
}

void resize(const Call& call) {
  const std::int64_t mode = call.number("mode");  // ResizeMode: nearest, linear, cubic
  const bool corners = call.number("align_corners") != 0;
  const char* names[] = {"nearest", "linear", "cubic"};
  Attributes attributes = {
      {"mode", std::string(names[mode])},
      {"coordinate_transformation_mode",
       std::string(mode == 0 ? "asymmetric" : (corners ? "align_corners" : "half_pixel"))}};
  if (mode == 0) attributes.push_back({"nearest_mode", std::string("floor")});
  if (mode == 2) attributes.push_back({"cubic_coeff_a", -0.75});
  const std::size_t rank = call.value(0).shape.size();
  const std::vector<double>& scale = call.reals("scale");
  Lowering& to = call.to;
  const std::string roi = to.opset() < 13 ? to.constant(Tensor::empty(DType::f32, {0})) : std::string();
  if (!scale.empty()) {
    std::vector<float> scales = {1, 1};
    for (std::size_t i = 2; i < rank; ++i) {
      const SizeExpr& in = call.value(0).sizes[i];
      const double factor = scale[scale.size() == 1 ? 0 : i - 2];
      scales.push_back(
          static_cast<float>(in.is_constant() ? resize_factor(mode, rank, in.constant, factor) : factor));
    }
    return call.result(to.node("Resize", {call.floats(0), roi, to.reals(scales)}, attributes), DType::f32);
  }
  const std::vector<SizeExpr> given = call.sizes("size");
  std::vector<SizeExpr> wanted = {call.value(0).sizes[0], call.value(0).sizes[1]};
  for (std::size_t i = 2; i < rank; ++i) wanted.push_back(given[given.size() == 1 ? 0 : i - 2]);
  const std::string scales = to.opset() < 13 ? to.constant(Tensor::empty(DType::f32, {0})) : std::string();
  call.result(to.node("Resize", {call.floats(0), roi, scales, to.sizes(wanted)}, attributes), DType::f32);
}

}  // namespace

void add_images(TranslateTable& table) {
  table.insert({{&operations::max_pool, max_pool},
                {&operations::max_pool_with_indices, max_pool_with_indices},
                {&operations::roi_align, roi_align},
                {&operations::avg_pool, avg_pool},
                {&operations::adaptive_avg_pool, adaptive_avg_pool},
                {&operations::adaptive_max_pool, adaptive_max_pool},
                {&operations::resize, resize}});
}

}  // namespace ballast::onnx
