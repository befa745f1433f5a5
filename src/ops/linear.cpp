// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ops/activation.h"
#include "ops/args.h"
#include "ops/cache.h"
#include "ops/gemm.h"
#include "ops/kernels.h"
#include "ops/onednn.h"
#include "ops/operations.h"
#include "ops/packed.h"
#include "ops/parallel.h"

namespace ballast {

using ops::data_of;
using ops::form;

namespace {

constexpr std::int64_t kFewRows =
    3;  // up to here a row at a time beats the packing of matrices: the weights are read once, from memory

// A product of matrices made ready for `rows` rows: the weight in oneDNN's order.
struct PreparedLinear {
  dnnl::matmul primitive;
  ops::Desc source;
  ops::Desc bias_desc;
  ops::Desc target;
  ops::Desc scratch;
  ops::SharedWeight weight;
  Tensor bias;
  Activation left;
};

// AVX-512's kernels take weights in panels of 64 or 32 columns. Left alone oneDNN chooses by the number of
// rows and threads, and one weight would be kept in two orders; the sums are the same in both. Narrow panels
// give many threads something to do; with many inputs they are slower.
dnnl::memory::format_tag panels_for(std::int64_t in, std::int64_t out) {
  constexpr std::int64_t kSmall = 1024;
  return in <= kSmall && out <= kSmall ? dnnl::memory::format_tag::BA16a32b
                                       : dnnl::memory::format_tag::BA16a64b;
}

PreparedLinear prepare(std::int64_t rows, const Tensor& weight, const Tensor& bias, const LinearArgs& args) {
  const std::int64_t in = weight.shape()[0];
  const std::int64_t out = weight.shape()[1];
  const Tensor given = ops::floats("linear", weight);
  const Tensor w = given.is_contiguous() || given.t().is_contiguous()
                       ? given
                       : ops::dense(given);  // oneDNN has no odd strides
  const Tensor b = ops::parameter("linear", "bias", bias, out);
  const ops::Desc source = ops::strided({rows, in}, {in, 1});
  const ops::Desc target = ops::strided({rows, out}, {out, 1});
  const ops::Desc bias_desc = bias.defined() ? ops::strided({1, out}, {out, 1}) : ops::Desc();
  ops::Attributes attributes = ops::attributes_for(args.activation);
  const ops::ThreadScope threads;
  const auto with = [&](const ops::Desc& order, bool may_be_none) {
    return dnnl::matmul::primitive_desc(dnnl::matmul::desc(source, order, bias_desc, target), attributes.attr,
                                        ops::engine(), may_be_none);
  };
  dnnl::matmul::primitive_desc found;
  if (ops::isa_in_use() == Isa::avx512)
    found = with({{in, out}, dnnl::memory::data_type::f32, panels_for(in, out)}, true);
  if (!found || !std::string_view(found.impl_info_str()).starts_with("brg"))
    found = with(ops::any_order({in, out}), false);
  const ops::Desc as_it_lies = ops::strided(w.shape(), w.strides());
  return {dnnl::matmul(found),
          source,
          bias_desc,
          target,
          found.scratchpad_desc(),
          ops::ordered(args.cache, weight, as_it_lies, w, found.weights_desc()),
          b,
          attributes.left};
}

// The weight as rows of one output each, [out, in] with dense rows: what a .pt file holds anyway.
struct OutputRows {
  Tensor weight;
};

void apply_output_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& out) {
  const std::int64_t in = x.shape()[1];
  const std::int64_t outs = weight.shape()[0];
  const std::int64_t stride = weight.strides()[0];
  const float* w = data_of(weight);
  const float* b = data_of(bias);
  const float* from = data_of(x);
  float* to = data_of(out);
  ops::parallel((outs + 3) / 4, 16384 / (in * 4 + 1) + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      const std::int64_t first = group * 4;
      const std::int64_t count = std::min<std::int64_t>(4, outs - first);
      for (std::int64_t row = 0; row < x.shape()[0]; ++row) {
        float sums[4];
        if (count == 4)
          ops::kernels().dot4(from + row * in, w + first * stride, stride, in, sums);
        else
          for (std::int64_t k = 0; k < count; ++k)
            sums[k] = ops::kernels().dot(from + row * in, w + (first + k) * stride, in);
        for (std::int64_t k = 0; k < count; ++k)
          to[row * outs + first + k] = sums[k] + (b != nullptr ? b[first + k] : 0);
      }
    }
  });
}

// [in, out] whose columns lie as a .pt file has them: as rows of [out, in].
bool dense_columns(const Tensor& weight) {
  return weight.strides()[0] == 1 || weight.shape()[0] == 1;
}

// Read once, row by row of its transpose, where it lies.
bool lies_in_output_rows(const Tensor& weight) {
  return weight.dtype() == DType::f32 && dense_columns(weight) && ops::is_aligned(weight);
}

// Few rows of a weight that lies otherwise.
void apply_to_few(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearArgs& args,
                  Tensor& out) {
  ops::CacheKey key;
  key.add(weight);
  const auto rows = ops::cached<OutputRows>(
      args.cache, key, [&] { return OutputRows{ops::dense_floats("linear", weight.t())}; });
  apply_output_rows(x, rows->weight, bias, out);
}

void apply_prepared(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearArgs& args,
                    Tensor& out) {
  ops::CacheKey key;
  key.add(x.shape()[0]).add(weight).add(bias).add(args.activation).add(ops::usable_threads());
  const auto ready =
      ops::cached<PreparedLinear>(args.cache, key, [&] { return prepare(x.shape()[0], weight, bias, args); });
  ops::execute(ready->primitive, ready->scratch,
               {{DNNL_ARG_SRC, ops::memory_of(ready->source, x.data())},
                {DNNL_ARG_WEIGHTS, ready->weight->memory},
                {DNNL_ARG_DST, ops::memory_of(ready->target, out.mutable_data())},
                {DNNL_ARG_BIAS,
                 bias.defined() ? ops::memory_of(ready->bias_desc, ready->bias.data()) : dnnl::memory()}});
  ops::activate_in_place(out, ready->left);
}

// With AVX2 oneDNN has no order of its own for the weight, and packs it at every call; ours serves any number
// of rows (docs/decisions/0023).
bool packs_weights() {
  return ops::isa_in_use() == Isa::avx2;
}

void apply_packed(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearArgs& args,
                  Tensor& out) {
  ops::CacheKey key;
  key.add(weight);
  const auto ready =
      ops::cached<ops::PackedMatrix>(args.cache, key, [&] { return ops::packed_weight("linear", weight); });
  ops::multiply(data_of(x), x.shape()[0], *ready, data_of(bias), args.activation, data_of(out));
}

// Whether few rows are as fast with what is packed for many: then a weight that must be copied for either is
// copied once.
bool shares_what_it_packs() {
  return ops::isa_in_use() != Isa::scalar;
}

// Small products are done before oneDNN has looked up its arguments.
bool worth_preparing(std::int64_t rows, std::int64_t in, std::int64_t outs) {
  return rows * in * outs > ops::kSmallProduct;
}

// A weight in another dtype or at an odd byte, as F32 that can be read.
struct ReadableWeight {
  Tensor weight;
};

// The weight itself, or what was made of it at the first call.
Tensor readable(const Tensor& weight, OpCache* cache) {
  if (weight.dtype() == DType::f32 && ops::is_aligned(weight)) return weight;
  ops::CacheKey key;
  key.add(weight);
  return ops::cached<ReadableWeight>(cache, key,
                                     [&] { return ReadableWeight{ops::floats("linear", weight)}; })
      ->weight;
}

// Nothing is packed: the product is small, or there is nowhere to keep what was.
void apply_once(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearArgs& args,
                Tensor& out) {
  const std::int64_t columns = out.shape()[1];
  float* to = data_of(out);
  for (std::int64_t row = 0; bias.defined() && row < out.shape()[0]; ++row) {
    std::memcpy(to + row * columns, bias.data(), static_cast<std::size_t>(columns) * sizeof(float));
  }
  ops::gemm(ops::matrix_of(x), ops::matrix_of(readable(weight, args.cache)), to, columns, 1,
            bias.defined() ? 1 : 0);
  ops::activate_in_place(out, args.activation);
}

// F64, which none of them computes. Parameters may be narrower.
Tensor apply_wide(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  Activation activation) {
  for (const Tensor* parameter : {&weight, &bias}) {
    if (!parameter->defined()) continue;
    ops::require_computable(op, *parameter);
    if (!is_floating(parameter->dtype()))
      fail(Errc::bad_dtype, op, "{} with {}: a floating dtype is wanted", form(x), form(*parameter));
  }
  if (bias.defined() && (bias.rank() != 1 || bias.numel() != weight.shape()[1]))
    fail(Errc::shape_mismatch, op, "bias is {}, must be [{}]", form(bias), weight.shape()[1]);
  const Tensor product = matmul(x, weight.to(DType::f64));
  return activate(bias.defined() ? add(product, bias.to(DType::f64)) : product, activation);
}

Tensor linear_cpu(const Operation& op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  OpCache* cache, Activation activation) {
  const LinearArgs args{.activation = activation, .cache = cache};
  if (weight.rank() != 2 || x.rank() == 0 || x.shape()[x.rank() - 1] != weight.shape()[0]) {
    fail(Errc::shape_mismatch, op.name,
         "{} with weight {}: the last dimension must be the weight's first ([in, out])", form(x),
         form(weight));
  }
  if (x.dtype() == DType::f64) return apply_wide(op.name, x, weight, bias, activation);
  const std::int64_t in = weight.shape()[0];
  const std::int64_t outs = weight.shape()[1];
  const std::int64_t rows = ops::product(x.shape(), 0, x.rank() - 1);
  const Tensor from = ops::dense_floats(op.name, x).reshape({rows, in});
  const Tensor b = ops::parameter(op.name, "bias", bias, outs);
  Tensor out = ops::new_floats({rows, outs});
  if (out.numel() > 0) {
    const bool few = rows <= kFewRows && in > 0;
    if (few && lies_in_output_rows(weight)) {
      apply_output_rows(from, weight.t(), b, out);
      ops::activate_in_place(out, args.activation);
    } else if (few && !shares_what_it_packs() && (args.cache != nullptr || dense_columns(weight))) {
      apply_to_few(from, weight, b, args, out);
      ops::activate_in_place(out, args.activation);
    } else if (args.cache != nullptr && in > 0 && packs_weights() && worth_preparing(rows, in, outs)) {
      apply_packed(from, weight, b, args, out);
    } else if (args.cache != nullptr && worth_preparing(rows, in, outs)) {
      ops::guarded(op.name, [&] { apply_prepared(from, weight, bias, args, out); });
    } else {
      apply_once(from, weight, b, args, out);
    }
  }
  Shape shape = x.shape();
  shape[shape.size() - 1] = outs;
  return out.reshape(shape).to(x.dtype());
}

}  // namespace

namespace operations {

constinit const Linear linear = {about("linear", {"x", "weight", "bias?"}, {}, forms::linear), {linear_cpu}};

}  // namespace operations

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearArgs& args) {
  return ops::run_activated(operations::linear, args.activation, x, weight, bias, args.cache);
}

}  // namespace ballast
