// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums, order.
#include <cmath>

#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

DType reduction_dtype(DType dtype) {
  if (dtype == DType::f64) return DType::f64;
  return is_floating(dtype) ? DType::f32 : DType::i64;
}

// Dimensions from the start; all of them when none are named.
Dims axes_of(const Call& call) {
  const auto rank = static_cast<std::int64_t>(call.value(0).shape.size());
  Dims axes = call.list("dims");
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  return axes;
}

struct Reduction {
  explicit Reduction(const Call& the_call)
      : call(the_call),
        to(the_call.to),
        dtype(reduction_dtype(the_call.result_value().dtype)),
        axes(axes_of(the_call)),
        keep(the_call.number("keepdim") != 0) {
    if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
    x = call.in(0, dtype);
  }

  const Call& call;
  Lowering& to;
  DType dtype;
  Dims axes;
  bool keep;
  std::string x;

  [[nodiscard]] std::string by(const char* op, const std::string& of) const {
    return to.reduce(op, of, axes, keep);
  }

  void done(const std::string& name) const { call.result(name, dtype); }
};

template <const auto& Name>
void plain_reduction(const Call& call) {
  const Reduction r(call);
  r.done(r.by(Name, r.x));
}

// How many elements one value is made of, in the dtype of the computation.
std::string count_of(const Reduction& r) {
  Dims axes = r.axes;
  const GraphValue& x = r.call.value(0);
  if (axes.empty())
    for (std::size_t i = 0; i < x.shape.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::int64_t fixed = 1;
  std::vector<SizeExpr> open;
  for (const std::int64_t axis : axes) {
    const SizeExpr& size = x.sizes[static_cast<std::size_t>(axis)];
    if (size.is_constant())
      fixed *= size.constant;
    else
      open.push_back(size);
  }
  if (open.empty()) return r.to.real(static_cast<double>(fixed), r.dtype);
  std::string product = r.to.scalar(fixed);
  for (const SizeExpr& size : open) product = r.to.node("Mul", {product, r.to.size_scalar(size)});
  return r.to.cast(product, DType::i64, r.dtype);
}

std::string variance(const Reduction& r) {
  const std::string mean = r.to.reduce("ReduceMean", r.x, r.axes, true);
  const std::string distance = r.to.node("Sub", {r.x, mean});
  const std::string squares = r.to.node("Mul", {distance, distance});
  const std::int64_t correction = r.call.number("correction");
  if (correction == 0) return r.by("ReduceMean", squares);
  const std::string divisor =
      r.to.node("Sub", {count_of(r), r.to.real(static_cast<double>(correction), r.dtype)});
  return r.to.node("Div", {r.by("ReduceSum", squares), divisor});
}

void var(const Call& call) {
  const Reduction r(call);
  r.done(variance(r));
}

void stddev(const Call& call) {
  const Reduction r(call);
  r.done(r.to.node("Sqrt", {variance(r)}));
}

void norm(const Call& call) {
  const Reduction r(call);
  const double p = call.real("p");
  if (p == 1) return r.done(r.by("ReduceL1", r.x));
  if (p == 2) return r.done(r.by("ReduceL2", r.x));
  if (std::isinf(p)) return r.done(r.by(p > 0 ? "ReduceMax" : "ReduceMin", r.to.node("Abs", {r.x})));
  if (p == 0) {
    const std::string zero = r.to.node("Equal", {r.x, r.to.real(0, r.dtype)});
    const std::string count = r.to.cast(r.to.node("Not", {zero}), DType::boolean, r.dtype);
    return r.done(r.by("ReduceSum", count));
  }
  const std::string powers = r.to.node("Pow", {r.to.node("Abs", {r.x}), r.to.real(p, r.dtype)});
  r.done(r.to.node("Pow", {r.by("ReduceSum", powers), r.to.real(1 / p, r.dtype)}));
}

void truth(const Call& call, const char* op) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  const std::string truth = call.to.cast(call.in(0, DType::boolean), DType::boolean, DType::i32);
  call.result(call.to.reduce(op, truth, axes_of(call), call.number("keepdim") != 0), DType::i32);
}

void any(const Call& call) {
  truth(call, "ReduceMax");
}

void all(const Call& call) {
  truth(call, "ReduceMin");
}

void place_of(const Call& call, const char* op) {
  const GraphValue& x = call.value(0);
  if (x.shape.empty()) call.refuse("a tensor without dimensions");
  const DType dtype = is_floating(x.dtype) && x.dtype != DType::f64 ? DType::f32 : DType::f64;
  std::string in = call.in(0, dtype);
  const Dims axes = axes_of(call);
  const bool keep = call.number("keepdim") != 0;
  if (!axes.empty())
    return call.result(call.to.node(op, {in}, {{"axis", axes[0]}, {"keepdims", std::int64_t{keep}}}));
  in = call.to.reshape(in, {-1});
  const std::string place =
      call.to.node(op, {in}, {{"axis", std::int64_t{0}}, {"keepdims", std::int64_t{0}}});
  call.result(keep ? call.to.reshape(place, Dims::filled(x.shape.size(), 1)) : place);
}

void argmax(const Call& call) {
  place_of(call, "ArgMax");
}

void argmin(const Call& call) {
  place_of(call, "ArgMin");
}

void cumsum(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  const DType dtype = reduction_dtype(call.result_value().dtype);
  call.result(call.to.node("CumSum", {call.in(0, dtype), call.to.scalar(call.axis("dim"))}), dtype);
}

// ONNX has no running products: the product of each row of x, spread, with ones behind the element.
void cumprod(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  Lowering& to = call.to;
  const DType dtype = reduction_dtype(call.result_value().dtype);
  const std::int64_t axis = call.axis("dim");
  const SizeExpr& size = call.value(0).sizes[static_cast<std::size_t>(axis)];
  const std::string numbers = to.node("Range", {to.scalar(0), to.size_scalar(size), to.scalar(1)});
  const auto rank = static_cast<std::int64_t>(call.value(0).shape.size());
  Dims column = Dims::filled(static_cast<std::size_t>(rank - axis) + 1, 1);
  Dims row = column;
  column[1] = -1;
  row[0] = -1;
  const std::string behind = to.node("Greater", {to.reshape(numbers, column), to.reshape(numbers, row)});
  const std::string spread = to.unsqueeze(call.in(0, dtype), {axis});
  const std::string kept = to.node("Where", {behind, to.real(1, dtype), spread});
  call.result(to.reduce("ReduceProd", kept, {axis + 1}, false), dtype);
}

// sort is a topk of all.
void topk(const Call& call) {
  if (call.value(0).shape.empty()) call.refuse("a tensor without dimensions");
  const DType dtype = reduction_dtype(call.value(0).dtype);
  const std::vector<std::string> both = call.to.nodes(
      "TopK", {call.in(0, dtype), call.to.size(call.size("count"))},
      {{"axis", call.axis("dim")}, {"largest", call.number("descending")}, {"sorted", std::int64_t{1}}}, 2);
  call.result(both[0], dtype, 0);
  call.result(both[1], DType::i64, 1);
}

constexpr char kSum[] = "ReduceSum";
constexpr char kProd[] = "ReduceProd";
constexpr char kMean[] = "ReduceMean";
constexpr char kMax[] = "ReduceMax";
constexpr char kMin[] = "ReduceMin";
constexpr char kLogSumExp[] = "ReduceLogSumExp";

}  // namespace

void add_reductions(TranslateTable& table) {
  table.insert({{&operations::sum, plain_reduction<kSum>},
                {&operations::prod, plain_reduction<kProd>},
                {&operations::mean, plain_reduction<kMean>},
                {&operations::max, plain_reduction<kMax>},
                {&operations::min, plain_reduction<kMin>},
                {&operations::logsumexp, plain_reduction<kLogSumExp>},
                {&operations::var, var},
                {&operations::stddev, stddev},
                {&operations::norm, norm},
                {&operations::any, any},
                {&operations::all, all},
                {&operations::argmax, argmax},
                {&operations::argmin, argmin},
                {&operations::cumsum, cumsum},
                {&operations::cumprod, cumprod},
                {&operations::sort, topk},
                {&operations::topk, topk}});
}

}  // namespace ballast::onnx
