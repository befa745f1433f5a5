// SPDX-License-Identifier: Apache-2.0
// Elements chosen by numbers, and numbers of those that values choose.
#include <limits>

#include "onnx/lowering.h"
#include "ops/args.h"
#include "ops/counting.h"

namespace ballast::onnx {
namespace {

std::string index_of(const Call& call, std::size_t i) {
  return call.value(i).dtype == DType::i32 ? call.in(i) : call.in(i, DType::i64);
}

void embedding(const Call& call) {
  call.result(call.to.node("Gather", {call.in(1), index_of(call, 0)}, {{"axis", std::int64_t{0}}}),
              call.value(1).dtype);
}

void index_select(const Call& call) {
  std::string index = index_of(call, 1);
  if (call.value(1).shape.empty()) index = call.to.reshape(index, {1});
  call.result(call.to.node("Gather", {call.in(0), index}, {{"axis", call.axis("dim")}}));
}

void gather(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  call.result(call.to.node("GatherElements", {call.in(0), index_of(call, 1)}, {{"axis", call.axis("dim")}}));
}

// The source with the shape of the index.
std::string scattered(const Call& call, DType dtype) {
  const std::int64_t index = call.node.inputs[1];
  std::string source = call.in(2, dtype);
  if (call.value(2).shape.empty()) {
    source = call.to.node("Expand", {source, call.to.shape_of(index)});
  } else if (!(call.value(2).shape == call.value(1).shape)) {
    Dims starts;
    Dims axes;
    for (std::size_t i = 0; i < call.value(1).shape.size(); ++i) {
      starts.push_back(0);
      axes.push_back(static_cast<std::int64_t>(i));
    }
    source = call.to.slice(source, call.to.ints(starts), call.to.shape_of(index), call.to.ints(axes));
  }
  return source;
}

void scatter(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  const std::string source = scattered(call, call.value(0).dtype);
  call.result(
      call.to.node("ScatterElements", {call.in(0), index_of(call, 1), source}, {{"axis", call.axis("dim")}}));
}

void scatter_add(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  if (call.to.opset() < 16) call.refuse("sums of what is scattered need opset 16");
  const DType dtype = ops::compute_dtype(call.value(0).dtype);
  call.result(call.to.node("ScatterElements", {call.in(0, dtype), index_of(call, 1), scattered(call, dtype)},
                           {{"axis", call.axis("dim")}, {"reduction", std::string("add")}}),
              dtype);
}

void one_hot(const Call& call) {
  const std::int64_t classes = call.number("classes");
  if (classes < 0) call.refuse("the number of classes is told from the values; give it");
  call.result(call.to.node("OneHot", {call.in(0, DType::i64), call.to.scalar(classes), call.to.ints({0, 1})},
                           {{"axis", std::int64_t{-1}}}));
}

// A row for each place where ONNX has a column.
void nonzero(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  call.result(call.to.node("Transpose", {call.to.node("NonZero", {call.in(0)})}, {{"perm", Dims{1, 0}}}));
}

// Boxes of one kind next to one another and far from those of others, as torchvision moves them. The 0 is for
// when there are none.
std::string apart(const Call& call, const std::string& boxes) {
  Lowering& to = call.to;
  const std::string all =
      to.node("Concat", {to.reshape(boxes, {-1}), to.reals({0})}, {{"axis", std::int64_t{0}}});
  const std::string extent =
      to.node("Sub", {to.reduce("ReduceMax", all, {0}, true), to.reduce("ReduceMin", all, {0}, true)});
  const std::string step = to.node("Add", {extent, to.reals({1})});
  const std::string kinds = to.cast(call.in(2, DType::i64), DType::i64, DType::f32);
  return to.node("Add", {boxes, to.unsqueeze(to.node("Mul", {kinds, step}), {1})});
}

void nms(const Call& call) {
  Lowering& to = call.to;
  const double threshold = call.real("iou_threshold");
  if (call.value(0).dtype == DType::f64 || call.value(1).dtype == DType::f64)
    call.refuse("NonMaxSuppression computes in F32");
  if (!(threshold >= 0 && threshold <= 1)) call.refuse("NonMaxSuppression takes thresholds from 0 to 1");
  const std::string boxes = call.has(2) ? apart(call, call.floats(0)) : call.floats(0);
  const std::string chosen =
      to.node("NonMaxSuppression", {to.unsqueeze(boxes, {0}), to.unsqueeze(call.floats(1), {0, 1}),
                                    to.ints({std::numeric_limits<std::int64_t>::max()}),
                                    to.reals({static_cast<float>(threshold)})});
  call.result(to.squeeze(to.slice(chosen, 1, 2, 3), {1}));  // [image, class, box]
}

}  // namespace

void add_indexing(TranslateTable& table) {
  table.insert({{&operations::embedding, embedding},
                {&operations::index_select, index_select},
                {&operations::gather, gather},
                {&operations::scatter, scatter},
                {&operations::scatter_add, scatter_add},
                {&operations::one_hot, one_hot},
                {&operations::nonzero, nonzero},
                {&operations::nms, nms}});
}

}  // namespace ballast::onnx
