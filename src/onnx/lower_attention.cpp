// SPDX-License-Identifier: Apache-2.0
// Attention: softmax(query key^T * scale + mask) value.
#include <limits>

#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

std::string turned_key(const Call& call) {
  const auto rank = static_cast<std::int64_t>(call.value(1).shape.size());
  Dims order;
  for (std::int64_t i = 0; i < rank - 2; ++i) order.push_back(i);
  order.push_back(rank - 1);
  order.push_back(rank - 2);
  return call.to.node("Transpose", {call.floats(1)}, {{"perm", order}});
}

// BOOL [queries, keys]: query i sees keys up to i + offset.
std::string causal_mask(const Call& call) {
  Lowering& to = call.to;
  const auto& query = call.value(0).sizes;
  const auto& key = call.value(1).sizes;
  const SizeExpr& queries = query[query.size() - 2];
  const SizeExpr& keys = key[key.size() - 2];
  const SizeExpr offset = call.size("query_offset");
  return to.shared("causal " + to_string(queries) + " " + to_string(keys) + " " + to_string(offset), [&] {
    const auto count = [&](const SizeExpr& size) {
      return to.node("Range", {to.scalar(0), to.size_scalar(size), to.scalar(1)});
    };
    const std::string rows = to.unsqueeze(to.node("Add", {count(queries), to.size_scalar(offset)}), {1});
    return to.node("Not", {to.node("Less", {rows, to.unsqueeze(count(keys), {0})})});
  });
}

void scaled_dot_product_attention(const Call& call) {
  Lowering& to = call.to;
  const std::string scaled = to.node("Mul", {call.floats(0), to.real(call.real("scale"))});
  std::string scores = to.node("MatMul", {scaled, turned_key(call)});
  const std::string never = to.real(-std::numeric_limits<double>::infinity());
  if (call.has(3)) {
    scores = call.value(3).dtype == DType::boolean ? to.node("Where", {call.in(3), scores, never})
                                                   : to.node("Add", {scores, call.floats(3)});
  }
  if (call.number("causal") != 0) scores = to.node("Where", {causal_mask(call), scores, never});
  const std::string weights = to.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  call.result(to.node("MatMul", {weights, call.floats(2)}), DType::f32);
}

}  // namespace

void add_attention(TranslateTable& table) {
  table.insert({{&operations::scaled_dot_product_attention, scaled_dot_product_attention}});
}

}  // namespace ballast::onnx
