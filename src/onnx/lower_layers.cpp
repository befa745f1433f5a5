// SPDX-License-Identifier: Apache-2.0
// Products of matrices and convolutions.
#include "base/fail.h"
#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

// F64 stays what it is: ONNX has it, if not every runtime.
DType computed_in(const Call& call) {
  return call.value(0).dtype == DType::f64 ? DType::f64 : DType::f32;
}

void matmul(const Call& call) {
  const DType dtype = computed_in(call);
  call.result(call.to.node("MatMul", {call.in(0, dtype), call.in(1, dtype)}), dtype);
}

// Gemm takes PyTorch's [out, in] as it lies in the file.
void linear(const Call& call) {
  Lowering& to = call.to;
  const DType dtype = computed_in(call);
  const std::string x = call.in(0, dtype);
  const std::int64_t weight = call.node.inputs[1];
  if (call.value(0).shape.size() == 2) {
    const bool turned = to.lies_transposed(weight);
    const std::string w =
        turned ? to.cast(to.transposed(weight), call.value(1).dtype, dtype) : call.in(1, dtype);
    Attributes attributes;
    if (turned) attributes.push_back({"transB", std::int64_t{1}});
    return call.result(to.node("Gemm", {x, w, call.in(2, dtype)}, std::move(attributes)), dtype);
  }
  const std::string product = to.node("MatMul", {x, call.in(1, dtype)});
  call.result(call.has(2) ? to.node("Add", {product, call.in(2, dtype)}) : product, dtype);
}

Attributes conv_attributes(const Call& call, const Dims& kernel, const Dims& after) {
  Dims pads = call.list("before");
  for (const std::int64_t pad : after) pads.push_back(pad);
  return {{"kernel_shape", kernel},
          {"strides", call.list("stride")},
          {"dilations", call.list("dilation")},
          {"pads", pads},
          {"group", call.number("groups")}};
}

Dims kernel_of(const Call& call) {
  const Shape& weight = call.value(1).shape;
  return ShapeView(weight.data() + 2, weight.size() - 2);
}

void convolution(const Call& call, const char* op, const Attributes& attributes) {
  const DType dtype = computed_in(call);
  call.result(call.to.node(op, {call.in(0, dtype), call.in(1, dtype), call.in(2, dtype)}, attributes), dtype);
}

void conv(const Call& call) {
  convolution(call, "Conv", conv_attributes(call, kernel_of(call), call.list("after")));
}

// ONNX keeps apart what is cut off at the end and what is added to it.
void conv_transpose(const Call& call) {
  Dims after = call.list("after");
  Dims added = Dims::filled(after.size(), 0);
  const Dims before = call.list("before");
  for (std::size_t i = 0; i < after.size(); ++i) {
    added[i] = before[i] - after[i];
    after[i] = before[i];
  }
  Attributes attributes = conv_attributes(call, kernel_of(call), after);
  attributes.push_back({"output_padding", added});
  convolution(call, "ConvTranspose", attributes);
}

}  // namespace

void add_layers(TranslateTable& table) {
  table.insert({{&operations::matmul, matmul},
                {&operations::linear, linear},
                {&operations::conv, conv},
                {&operations::conv_transpose, conv_transpose}});
}

}  // namespace ballast::onnx
