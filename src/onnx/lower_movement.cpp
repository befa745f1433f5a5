// SPDX-License-Identifier: Apache-2.0
// Elements moved: views, concatenation, padding, tensors made of nothing.
#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

// Expressions with a divisor are whole parts of the sum.
void add_to(SizeExpr& sum, const SizeExpr& more) {
  if (more.divisor != 1) return sum.terms.push_back({1, {}, {more}});
  sum.constant += more.constant;
  sum.terms.insert(sum.terms.end(), more.terms.begin(), more.terms.end());
}

SizeExpr plus(const SizeExpr& a, const SizeExpr& b) {
  SizeExpr sum;
  add_to(sum, a);
  add_to(sum, b);
  return sum;
}

bool same(const SizeExpr& a, const SizeExpr& b) {
  return to_string(a) == to_string(b);
}

// Input 0 in the dtype it is held in, and the result in the same.
std::string moved(const Call& call) {
  return call.in(0, call.held(0));
}

void done(const Call& call, const std::string& name) {
  call.result(name, call.held(0));
}

void clone(const Call& call) {
  call.result(call.in(0));
}

void permute(const Call& call) {
  const auto rank = static_cast<std::int64_t>(call.value(0).shape.size());
  Dims order = call.list("order");
  for (std::int64_t& dim : order) dim = dim < 0 ? dim + rank : dim;
  if (order == Dims{1, 0} && call.to.lies_transposed(call.node.inputs[0]))
    return call.result(call.to.transposed(call.node.inputs[0]));
  done(call, call.to.node("Transpose", {moved(call)}, {{"perm", order}}));
}

void unsqueeze(const Call& call) {
  done(call, call.to.unsqueeze(moved(call), {call.number("dim")}));
}

void squeeze(const Call& call) {
  done(call, call.to.squeeze(moved(call), {call.number("dim")}));
}

void narrow(const Call& call) {
  const std::int64_t axis = call.axis("dim");
  const SizeExpr start = call.size("start");
  const SizeExpr end = plus(start, call.size("length"));
  const SizeExpr& whole = call.value(0).sizes[static_cast<std::size_t>(axis)];
  const std::string stop = same(end, whole) ? call.to.ints({kEnd}) : call.to.size(end);
  done(call, call.to.slice(moved(call), call.to.size(start), stop, call.to.ints({axis})));
}

void slice(const Call& call) {
  const std::int64_t step = call.number("step");
  done(call,
       call.to.slice(moved(call), call.to.size(call.size("start")), call.to.size(call.size("stop")),
                     call.to.ints({call.axis("dim")}), step == 1 ? std::string() : call.to.ints({step})));
}

void select(const Call& call) {
  const std::string index = call.to.size_scalar(call.size("index"));
  done(call, call.to.node("Gather", {moved(call), index}, {{"axis", call.axis("dim")}}));
}

// To sizes that are computed, or 0.
void reshape_to(const Call& call, const std::vector<SizeExpr>& wanted) {
  Attributes attributes;
  if (call.to.opset() >= 14)
    attributes.push_back({"allowzero", std::int64_t{1}});  // below, a 0 is what the input has there
  else if (std::any_of(wanted.begin(), wanted.end(),
                       [](const SizeExpr& size) { return size.is_constant() && size.constant == 0; }))
    call.refuse("a tensor without elements needs opset 14");
  done(call, call.to.node("Reshape", {moved(call), call.to.sizes(wanted)}, attributes));
}

// The sizes of the result; -1 where nothing tells one but the result itself.
std::vector<SizeExpr> sizes_after(const Call& call) {
  std::vector<SizeExpr> wanted = call.sizes("shape");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const SizeExpr& told = call.result_value().sizes[i];
    const bool itself =
        !told.is_constant() && !told.terms[0].dims.empty() && told.terms[0].dims[0].name.empty();
    if (wanted[i].is_constant() && wanted[i].constant == -1 && !itself) wanted[i] = told;
  }
  return wanted;
}

// One dimension may be left to the runtime (-1), or those that stay in their place (0); not both when it can
// be helped: of a tensor without elements nothing could be told from the rest then.
void reshape(const Call& call) {
  const std::vector<SizeExpr> wanted = sizes_after(call);
  const GraphValue& x = call.value(0);
  const GraphValue& y = call.result_value();
  Dims shape;
  std::size_t kept = 0;
  std::size_t open = 0;
  bool told = true;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool fixed = wanted[i].is_constant() && wanted[i].constant != -1;
    const bool stays = i < x.sizes.size() && !y.sizes[i].is_constant() && same(y.sizes[i], x.sizes[i]);
    if (fixed && wanted[i].constant == 0) return reshape_to(call, wanted);
    told = told && (fixed || !wanted[i].is_constant());
    shape.push_back(fixed ? wanted[i].constant : (stays ? 0 : -1));
    kept += shape[i] == 0 ? 1 : 0;
    open += shape[i] == -1 ? 1 : 0;
  }
  if (open == 0 || (open == 1 && (kept == 0 || !told)))
    return done(call, call.to.reshape(moved(call), shape));
  reshape_to(call, wanted);
}

void expand(const Call& call) {
  std::vector<SizeExpr> wanted = call.sizes("shape");
  for (SizeExpr& size : wanted)
    if (size.is_constant() && size.constant == -1) size.constant = 1;  // as it is
  done(call, call.to.node("Expand", {moved(call), call.to.sizes(wanted)}));
}

void concat(const Call& call) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < call.node.inputs.size(); ++i) parts.push_back(call.in(i));
  call.result(call.to.node("Concat", std::move(parts), {{"axis", call.axis("dim")}}));
}

void full(const Call& call) {
  const DType dtype = call.result_value().dtype;
  call.result(
      call.to.node("Expand", {call.to.real(call.real("value"), dtype), call.to.sizes(call.sizes("shape"))}));
}

void arange(const Call& call) {
  call.result(
      call.to.node("Range", {call.to.size_scalar(call.size("start")), call.to.size_scalar(call.size("stop")),
                             call.to.size_scalar(call.size("step"))}));
}

// A triangle of ones: row + diagonal >= column.
std::string lower_triangle(const Call& call, const SizeExpr& diagonal) {
  const GraphValue& x = call.value(0);
  Lowering& to = call.to;
  const auto count = [&](std::size_t from_end) {
    return to.node("Range", {to.scalar(0), to.size_scalar(x.sizes[x.sizes.size() - from_end]), to.scalar(1)});
  };
  const std::string rows = to.unsqueeze(to.node("Add", {count(2), to.size_scalar(diagonal)}), {1});
  const std::string columns = to.unsqueeze(count(1), {0});
  return to.node("Not", {to.node("Less", {rows, columns})});
}

void triangle(const Call& call, bool lower) {
  const GraphValue& x = call.value(0);
  const DType dtype = x.dtype == DType::f64 || x.dtype == DType::f32 ? x.dtype
                      : is_floating(x.dtype)                         ? DType::f32
                                                                     : DType::i64;
  const std::string in = call.in(0, dtype);
  SizeExpr diagonal = call.size("diagonal");
  if (call.to.opset() >= 14)
    return call.result(
        call.to.node("Trilu", {in, call.to.size_scalar(diagonal)}, {{"upper", std::int64_t{!lower}}}), dtype);
  const std::string zero = call.to.real(0, dtype);
  if (lower) return call.result(call.to.node("Where", {lower_triangle(call, diagonal), in, zero}), dtype);
  diagonal.constant -= 1;  // what lies below the upper triangle
  call.result(call.to.node("Where", {lower_triangle(call, diagonal), zero, in}), dtype);
}

void tril(const Call& call) {
  triangle(call, true);
}

void triu(const Call& call) {
  triangle(call, false);
}

// What wraps round, as slices put before and after.
std::string wrapped(Lowering& to, std::string x, std::int64_t axis, std::int64_t before, std::int64_t after) {
  std::vector<std::string> parts;
  if (before > 0) parts.push_back(to.slice(x, axis, -before, kEnd));
  parts.push_back(x);
  if (after > 0) parts.push_back(to.slice(x, axis, 0, after));
  return parts.size() == 1 ? x : to.node("Concat", parts, {{"axis", axis}});
}

void pad(const Call& call) {
  const GraphValue& value = call.value(0);
  const bool direct = value.dtype == DType::f32 || value.dtype == DType::f64 || value.dtype == DType::i64 ||
                      value.dtype == DType::i32;
  const DType dtype = direct ? value.dtype : (is_floating(value.dtype) ? DType::f32 : DType::i64);
  const std::string x = call.in(0, dtype);
  const std::vector<SizeExpr> amounts = call.sizes("amounts");
  const std::size_t rank = value.shape.size();
  const std::int64_t mode = call.number("mode");  // PadMode: constant, reflect, replicate, circular
  if (mode == 3) {
    std::string padded = x;
    const Dims each = call.list("amounts");
    for (std::size_t i = 0; i < each.size() / 2; ++i)
      padded =
          wrapped(call.to, padded, static_cast<std::int64_t>(rank - 1 - i), each[2 * i], each[2 * i + 1]);
    return call.result(padded, dtype);
  }
  std::vector<SizeExpr> pads(2 * rank);
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    pads[rank - 1 - i] = amounts[2 * i];
    pads[2 * rank - 1 - i] = amounts[2 * i + 1];
  }
  const char* names[] = {"constant", "reflect", "edge"};
  call.result(call.to.node("Pad",
                           {x, call.to.sizes(pads),
                            mode == 0 ? call.to.real(call.real("value"), dtype) : std::string()},
                           {{"mode", std::string(names[mode])}}),
              dtype);
}

// A constant wherever it can be exported: then no translation is asked for.
void only_constant(const Call& call) {
  call.refuse("ONNX cannot make it of sizes that vary");
}

void random(const Call& call) {
  call.refuse("makes other numbers at every call");
}

}  // namespace

void add_movement(TranslateTable& table) {
  table.insert({{&operations::clone, clone},
                {&operations::permute, permute},
                {&operations::unsqueeze, unsqueeze},
                {&operations::squeeze, squeeze},
                {&operations::narrow, narrow},
                {&operations::slice, slice},
                {&operations::select, select},
                {&operations::reshape, reshape},
                {&operations::expand, expand},
                {&operations::concat, concat},
                {&operations::full, full},
                {&operations::arange, arange},
                {&operations::arange_real, only_constant},
                {&operations::linspace, only_constant},
                {&operations::eye, only_constant},
                {&operations::rand, random},
                {&operations::randn, random},
                {&operations::randint, random},
                {&operations::tril, tril},
                {&operations::triu, triu},
                {&operations::pad, pad}});
}

}  // namespace ballast::onnx
