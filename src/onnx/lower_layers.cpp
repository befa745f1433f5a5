// SPDX-License-Identifier: Apache-2.0
// Products of matrices and convolutions.
#include "base/fail.h"
#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

void matmul(const Call& call) {
  call.result(call.to.node("MatMul", {call.floats(0), call.floats(1)}), DType::f32);
}

// Gemm takes PyTorch's [out, in] as it lies in the file.
void linear(const Call& call) {
  Lowering& to = call.to;
  const std::string x = call.floats(0);
  const std::int64_t weight = call.node.inputs[1];
  if (call.value(0).shape.size() == 2) {
    const bool turned = to.lies_transposed(weight);
    const std::string w =
        turned ? to.cast(to.transposed(weight), call.value(1).dtype, DType::f32) : call.floats(1);
    Attributes attributes;
    if (turned) attributes.push_back({"transB", std::int64_t{1}});
    return call.result(to.node("Gemm", {x, w, call.floats(2)}, std::move(attributes)), DType::f32);
  }
  const std::string product = to.node("MatMul", {x, call.floats(1)});
  call.result(call.has(2) ? to.node("Add", {product, call.floats(2)}) : product, DType::f32);
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

void conv(const Call& call) {
  const Attributes attributes = conv_attributes(call, kernel_of(call), call.list("after"));
  call.result(call.to.node("Conv", {call.floats(0), call.floats(1), call.floats(2)}, attributes), DType::f32);
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
  call.result(call.to.node("ConvTranspose", {call.floats(0), call.floats(1), call.floats(2)}, attributes),
              DType::f32);
}

}  // namespace

void add_layers(TranslateTable& table) {
  table.insert({{&operations::matmul, matmul},
                {&operations::linear, linear},
                {&operations::conv, conv},
                {&operations::conv_transpose, conv_transpose}});
}

}  // namespace ballast::onnx
