// SPDX-License-Identifier: Apache-2.0
// Convolutions by oneDNN, in the order its fastest kernels want: with the channels innermost, or, with AVX2,
// in blocks of them (docs/decisions/0024). Those of 3×3 that gain by it are made of patches (winograd.h).
#include "ballast/detail/ops/conv.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ballast/detail/ops/movement.h"
#include "ops/activation.h"
#include "ops/args.h"
#include "ops/cache.h"
#include "ops/conv_bounds.h"
#include "ops/conv_shapes.h"
#include "ops/kernels.h"
#include "ops/native.h"
#include "ops/onednn.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/winograd.h"
#include "tensor/resident.h"

namespace ballast {

using ops::ConvShapes;
using ops::form;

namespace {

// How images lie on the way in and out.
enum class ImageOrder : std::uint8_t { channels_last, row_major, blocks };

struct PreparedConv {
  ImageOrder in = ImageOrder::channels_last;
  ImageOrder out = ImageOrder::channels_last;
  std::optional<dnnl::primitive> primitive = {};  // none: oneDNN has nothing for these numbers
  ops::Desc source = {};
  ops::Desc target = {};
  ops::Desc scratch = {};
  ops::Desc bias_desc = {};
  ops::SharedWeight weight = {};
  std::shared_ptr<const ops::WinogradWeight> by_patches = {};  // then there is no primitive
  Tensor plain_weight = {};
  Tensor bias = {};
  bool bias_left = false;  // to be added by us
  Activation left = {};
};

// The weight as oneDNN counts its dimensions: groups (when there are several), out, in, kernel.
ops::Desc weight_desc(const ConvShapes& shapes, const Tensor& weight, bool transposed) {
  Tensor view = weight;
  if (shapes.groups > 1) {
    Shape shape = view.shape();
    shape[0] /= shapes.groups;
    shape.insert(0, shapes.groups);
    view = view.reshape(shape);
  }
  const std::int64_t first = shapes.groups > 1 ? 1 : 0;
  if (transposed) view = view.transpose(first, first + 1);
  return ops::strided(view.shape(), view.strides());
}

dnnl::memory::dims minus_one(const Dims& dims) {
  dnnl::memory::dims result = ops::dims_of(dims);
  for (auto& number : result) --number;  // oneDNN counts what lies between
  return result;
}

struct Descs {
  ops::Desc source;
  ops::Desc weight;
  ops::Desc bias;
  ops::Desc target;
};

ops::Desc image_desc(const Shape& shape, ImageOrder order) {
  if (order == ImageOrder::blocks)
    return {ops::dims_of(shape), dnnl::memory::data_type::f32, dnnl::memory::format_tag::nChw8c};
  return ops::strided(
      shape, order == ImageOrder::row_major ? contiguous_strides(shape) : ops::channels_last_strides(shape));
}

// The images' orders that may be used, the best first.
std::vector<std::pair<ImageOrder, ImageOrder>> orders_for(const Shape& input, const Shape& output) {
  constexpr std::int64_t kColours = 3;  // so few channels that oneDNN reads them row-major
  std::vector<std::pair<ImageOrder, ImageOrder>> orders;
  if (ops::isa_in_use() == Isa::avx2 && ops::fits_blocks(output)) {
    if (ops::fits_blocks(input))
      orders.emplace_back(ImageOrder::blocks, ImageOrder::blocks);
    else if (input[1] <= kColours)
      orders.emplace_back(ImageOrder::row_major, ImageOrder::blocks);
  }
  orders.emplace_back(ImageOrder::channels_last, ImageOrder::channels_last);
  return orders;
}

// Blocks are for oneDNN's compiled kernels; where it has none for them, it has loops that nobody wants.
bool is_compiled(const char* implementation) {
  return std::string_view(implementation).starts_with("jit");
}

struct GivenWeight {
  OpCache* cache;
  const Tensor& weight;
  const Tensor& values;  // of it, F32 and dense
  ops::Desc desc;
};

// oneDNN counts an image's places in 32 bits, and divides by what it has counted.
bool has_countable_places(const Shape& image) {
  std::int64_t places = 1;
  for (std::size_t i = 2; i < image.size(); ++i) {
    if (image[i] > INT32_MAX / places) return false;
    places *= std::max<std::int64_t>(image[i], 1);
  }
  return true;
}

// It takes time and memory for each place of the padding, also where a stride leaves nearly all of them out.
bool has_usual_padding(const ConvShapes& shapes) {
  constexpr std::int64_t kMost = 1 << 16;
  const auto is_usual = [](std::int64_t padding) { return padding <= kMost; };
  return std::all_of(shapes.before.begin(), shapes.before.end(), is_usual) &&
         std::all_of(shapes.after.begin(), shapes.after.end(), is_usual);
}

template <class Operation>
void choose(PreparedConv& prepared, const ConvShapes& shapes, const Descs& descs, dnnl::algorithm algorithm,
            const dnnl::primitive_attr& attr, const GivenWeight& weight) {
  const typename Operation::desc desc(dnnl::prop_kind::forward_inference, algorithm, descs.source,
                                      descs.weight, descs.bias, descs.target, ops::dims_of(shapes.stride),
                                      minus_one(shapes.dilation), ops::dims_of(shapes.before),
                                      ops::dims_of(shapes.after));
  const typename Operation::primitive_desc found(desc, attr, ops::engine(), true);
  if (!found || (prepared.out == ImageOrder::blocks && !is_compiled(found.impl_info_str()))) return;
  prepared.primitive = Operation(found);
  prepared.scratch = found.scratchpad_desc();
  prepared.weight =
      ops::ordered(weight.cache, weight.weight, weight.desc, weight.values, found.weights_desc());
}

PreparedConv prepare_patches(const ops::ConvCall& call, const Shape& input, const Shape& output) {
  const bool blocks = ops::isa_in_use() == Isa::avx2 && ops::fits_blocks(input) && ops::fits_blocks(output);
  const ImageOrder order = blocks ? ImageOrder::blocks : ImageOrder::channels_last;
  PreparedConv prepared{.in = order, .out = order};
  ops::CacheKey key;
  key.add(call.weight);
  prepared.by_patches = ops::cached_part<ops::WinogradWeight>(call.cache, key, [&] {
    ops::WinogradWeight made = ops::winograd_weight(ops::dense_floats_once(call.op, call.weight));
    give_back_pages(call.weight);
    return made;
  });
  prepared.bias = ops::parameter(call.op, "bias", call.bias, output[1]);
  if (!ops::is_step_when_finite(call.activation)) prepared.left = call.activation;
  return prepared;
}

PreparedConv prepare(const ops::ConvCall& call, const ConvShapes& shapes, const Shape& input, bool finite) {
  const bool transposed = call.transposed;
  const Tensor w = call.cache == nullptr ? ops::dense_floats(call.op, call.weight)
                                         : ops::dense_floats_once(call.op, call.weight);
  const Tensor b = ops::parameter(call.op, "bias", call.bias, shapes.out_channels);
  const GivenWeight given{call.cache, call.weight, w, weight_desc(shapes, w, transposed)};
  PreparedConv prepared{.plain_weight = w, .bias = b};
  const ops::ThreadScope threads;
  for (const auto& [in, out] : orders_for(input, shapes.output)) {
    prepared.in = in;
    prepared.out = out;
    if (!has_countable_places(input) || !has_countable_places(shapes.output) || !has_usual_padding(shapes))
      continue;  // the plain loops take them
    // oneDNN adds the bias of a transposed convolution with channels last one value at a time.
    prepared.bias_left = transposed && b.defined() && out == ImageOrder::channels_last;
    ops::Attributes attributes =
        ops::attributes_for(prepared.bias_left ? Activation{} : call.activation, finite);
    prepared.left = prepared.bias_left ? call.activation : attributes.left;
    try {
      const Descs descs{
          image_desc(input, in), ops::any_order(Dims(given.desc.dims())),
          b.defined() && !prepared.bias_left ? ops::strided({shapes.out_channels}, {1}) : ops::Desc(),
          image_desc(shapes.output, out)};
      prepared.source = descs.source;
      prepared.target = descs.target;
      prepared.bias_desc = descs.bias;
      if (transposed)
        choose<dnnl::deconvolution_forward>(prepared, shapes, descs, dnnl::algorithm::deconvolution_direct,
                                            attributes.attr, given);
      else
        choose<dnnl::convolution_forward>(prepared, shapes, descs, dnnl::algorithm::convolution_direct,
                                          attributes.attr, given);
    } catch (const dnnl::error&) {
      prepared.primitive.reset();  // numbers it does not even describe: the plain loops take them
    }
    if (prepared.primitive) break;
  }
  if (prepared.primitive) {
    prepared.plain_weight = {};
  } else {
    prepared.bias_left = false;
    prepared.left = call.activation;
  }
  return prepared;
}

// Where all is finite, ReLU and ReLU6 are bounds of the results.
void run_patches(const ops::ConvCall& call, const PreparedConv& ready, const ConvShapes& shapes,
                 const Shape& input, const Tensor& in, Tensor& out) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  const bool limited = ops::is_step_when_finite(call.activation);
  const bool above = call.activation.kind == Activation::Kind::relu6;
  ops::winograd(shapes, input, *ready.by_patches,
                {ops::data_of(ready.bias), limited ? 0.0F : -kNone, above ? 6.0F : kNone},
                {ops::data_of(in), ops::data_of(out), ready.in == ImageOrder::blocks});
}

void run(const ops::ConvCall& call, const PreparedConv& ready, const ConvShapes& shapes, const Shape& input,
         const Tensor& in, Tensor& out) {
  if (ready.by_patches) {
    run_patches(call, ready, shapes, input, in, out);
  } else if (!ready.primitive) {
    ops::plain_conv(shapes, in, ready.plain_weight, ready.bias, out, call.transposed);
  } else {
    const bool has_bias = ready.bias.defined() && !ready.bias_left;
    ops::execute(
        *ready.primitive, ready.scratch,
        {{DNNL_ARG_SRC, ops::memory_of(ready.source, in.data())},
         {DNNL_ARG_WEIGHTS, ready.weight->memory},
         {DNNL_ARG_DST, ops::memory_of(ready.target, out.mutable_data())},
         {DNNL_ARG_BIAS, has_bias ? ops::memory_of(ready.bias_desc, ready.bias.data()) : dnnl::memory()}});
  }
  if (ready.bias_left)
    ops::add_bias(out, ready.bias, ready.left);
  else
    ops::activate_in_place(out, ready.left);
}

Tensor image_for(const char* op, ImageOrder order, const Tensor& x) {
  if (order == ImageOrder::row_major) return ops::dense_floats(op, x);
  if (order == ImageOrder::blocks) {
    const Tensor own = ops::blocks_of(x);  // asked first: the row-major bytes of x are not made for it
    return own.defined() ? own : ops::to_blocks(ops::floats(op, ops::native_view(x)));
  }
  return ops::to_channels_last(ops::floats(op, ops::native_view(x)));
}

// F64, which oneDNN does not compute.
Tensor convolved_wide(const ops::ConvCall& call, const ConvShapes& shapes, const Tensor& x) {
  const auto widened = [&](const Tensor& parameter) {
    if (!parameter.defined()) return parameter;
    ops::require_computable(call.op, parameter);
    if (!is_floating(parameter.dtype()))
      fail(Errc::bad_dtype, call.op, "{} with {}: a floating dtype is wanted", form(x), form(parameter));
    return ops::dense(parameter.to(DType::f64));
  };
  Tensor out = ops::new_channels_last(DType::f64, shapes.output);
  ops::plain_conv(shapes, ops::to_channels_last(ops::aligned(x)), widened(call.weight), widened(call.bias),
                  out, call.transposed);
  return activate(out.contiguous(), call.activation);
}

Tensor convolved(const ops::ConvCall& call, const ConvShapes& shapes, const Tensor& x) {
  if (call.bias.defined() && (call.bias.rank() != 1 || call.bias.numel() != shapes.out_channels)) {
    fail(Errc::shape_mismatch, call.op, "bias is {}, must be [{}]", form(call.bias), shapes.out_channels);
  }
  if (try_numel(shapes.output) == 0) return Tensor::empty(x.dtype(), shapes.output);
  if (x.dtype() == DType::f64) return convolved_wide(call, shapes, x);
  const ops::Expected about = ops::guarded(call.op, [&] { return ops::expected(call, shapes, x); });
  ops::CacheKey key;
  key.add(x.shape())
      .add(call.weight)
      .add(call.bias)
      .add(shapes.stride)
      .add(shapes.dilation)
      .add(shapes.before)
      .add(shapes.after);
  key.add(shapes.groups).add(call.activation).add(call.transposed ? 1 : 0).add(ops::usable_threads());
  if (ops::is_step_when_finite(call.activation)) key.add(about.finite ? 1 : 0);
  key.add(about.by_patches ? 1 : 0);
  const auto ready = ops::guarded(call.op, [&] {
    return ops::cached<PreparedConv>(call.cache, key, [&] {
      return about.by_patches ? prepare_patches(call, x.shape(), shapes.output)
                              : prepare(call, shapes, x.shape(), about.finite);
    });
  });
  const Tensor in = image_for(call.op, ready->in, x);
  const bool blocks = ready->out == ImageOrder::blocks;
  Tensor out = blocks ? ops::new_blocks(shapes.output) : ops::new_channels_last(DType::f32, shapes.output);
  ops::guarded(call.op, [&] { run(call, *ready, shapes, x.shape(), in, out); });
  const double largest = ops::bound_after(about, call.activation);
  return (blocks ? ops::from_blocks(out, shapes.output, largest) : ops::row_major(out, largest))
      .to(x.dtype());
}

void require_defined(const char* op, const Tensor& x, const Tensor& weight) {
  if (!x.defined() || !weight.defined())
    fail(Errc::invalid_argument, op, "{} with weight {}", form(x), form(weight));
}

// The padding the convolution itself cannot do.
Tensor padded_by_mode(const Tensor& x, const ConvShapes& shapes, PadMode mode) {
  Dims amounts;
  for (std::size_t i = shapes.before.size(); i-- > 0;) {
    amounts.push_back(shapes.before[i]);
    amounts.push_back(shapes.after[i]);
  }
  return pad(x, amounts, mode);
}

template <bool transposed>
Tensor conv_cpu(const Operation& op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const ConvShapes& shapes, OpCache* cache, Activation activation) {
  return convolved({op.name, weight, bias, activation, cache, transposed}, shapes, x);
}

}  // namespace

namespace ops {

// What a trace writes down.
static ballast::Attributes attributes_of(const ConvShapes& shapes) {
  return {{"stride", shapes.stride},
          {"dilation", shapes.dilation},
          {"before", shapes.before},
          {"after", shapes.after},
          {"groups", shapes.groups}};
}

}  // namespace ops

namespace operations {

constinit const Convolution conv = {about("conv", {"x", "weight", "bias?"}, {}, forms::conv),
                                    {conv_cpu<false>}};
constinit const Convolution conv_transpose = {
    about("conv_transpose", {"x", "weight", "bias?"}, {}, forms::conv_transpose), {conv_cpu<true>}};

}  // namespace operations

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvArgs& args) {
  require_defined("conv", x, weight);
  if (x.rank() + 1 == weight.rank()) return conv(x.unsqueeze(0), weight, bias, args).squeeze(0);
  ConvShapes shapes = ops::conv_shapes(x, weight, args);
  Tensor in = x;
  if (args.padding_mode != PadMode::constant) {
    in = padded_by_mode(x, shapes, args.padding_mode);
    shapes.before = Dims::filled(shapes.before.size(), 0);
    shapes.after = shapes.before;
  }
  return ops::run_activated(operations::conv, args.activation, in, weight, bias, shapes, args.cache);
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ConvTransposeArgs& args) {
  require_defined("conv_transpose", x, weight);
  if (x.rank() + 1 == weight.rank()) return conv_transpose(x.unsqueeze(0), weight, bias, args).squeeze(0);
  return ops::run_activated(operations::conv_transpose, args.activation, x, weight, bias,
                            ops::conv_transpose_shapes(x, weight, args), args.cache);
}

Tensor conv_tbc(const Tensor& x, const Tensor& weight, const Tensor& bias, std::int64_t pad) {
  if (x.rank() != 3 || weight.rank() != 3)
    fail(Errc::shape_mismatch, "conv_tbc", "{} with weight {}: [time, batch, in] and [kernel, in, out]",
         form(x), form(weight));
  return conv(x.permute({1, 2, 0}), weight.permute({2, 1, 0}), bias, {.padding = {pad}})
      .permute({2, 0, 1})
      .contiguous();
}

}  // namespace ballast
