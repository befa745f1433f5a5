// SPDX-License-Identifier: Apache-2.0
// Element by element: arithmetic, comparisons, functions of one value.
#include <cmath>
#include <limits>

#include "onnx/lowering.h"
#include "ops/args.h"

namespace ballast::onnx {
namespace {

using ops::compute_dtype;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType computed(const Call& call) {
  return compute_dtype(call.result_value().dtype);
}

void binary(const Call& call, const char* op) {
  const DType dtype = computed(call);
  call.result(call.to.node(op, {call.in(0, dtype), call.in(1, dtype)}), dtype);
}

void add(const Call& call) {
  binary(call, "Add");
}

void sub(const Call& call) {
  binary(call, "Sub");
}

void mul(const Call& call) {
  binary(call, "Mul");
}

void div(const Call& call) {
  binary(call, "Div");
}

void pow(const Call& call) {
  if (computed(call) != DType::i64 || call.to.opset() >= 12) return binary(call, "Pow");
  const std::string power = call.to.node("Pow", {call.in(0, DType::f64), call.in(1, DType::f64)});
  call.result(power, DType::f64);
}

void extreme(const Call& call, const char* op, const char* beats) {
  const DType dtype = computed(call);
  if (dtype != DType::i64 || call.to.opset() >= 12) return binary(call, op);
  const std::string a = call.in(0, dtype);
  const std::string b = call.in(1, dtype);
  call.result(call.to.node("Where", {call.to.node(beats, {a, b}), a, b}), dtype);
}

void minimum(const Call& call) {
  extreme(call, "Min", "Less");
}

void maximum(const Call& call) {
  extreme(call, "Max", "Greater");
}

void prelu(const Call& call) {
  binary(call, "PRelu");
}

struct Pair {
  std::string a;
  std::string b;
};

Pair compared(const Call& call) {
  const DType dtype = compute_dtype(static_cast<DType>(call.number("dtype")));
  return {call.in(0, dtype), call.in(1, dtype)};
}

void eq(const Call& call) {
  const Pair pair = compared(call);
  call.result(call.to.node("Equal", {pair.a, pair.b}));
}

void ne(const Call& call) {
  const Pair pair = compared(call);
  call.result(call.to.node("Not", {call.to.node("Equal", {pair.a, pair.b})}));
}

void lt(const Call& call) {
  const Pair pair = compared(call);
  call.result(call.to.node("Less", {pair.a, pair.b}));
}

void gt(const Call& call) {
  const Pair pair = compared(call);
  call.result(call.to.node("Greater", {pair.a, pair.b}));
}

void or_equal(const Call& call, const char* newer, const char* strict) {
  const Pair pair = compared(call);
  if (call.to.opset() >= 12) return call.result(call.to.node(newer, {pair.a, pair.b}));
  call.result(
      call.to.node("Or", {call.to.node(strict, {pair.a, pair.b}), call.to.node("Equal", {pair.a, pair.b})}));
}

void le(const Call& call) {
  or_equal(call, "LessOrEqual", "Less");
}

void ge(const Call& call) {
  or_equal(call, "GreaterOrEqual", "Greater");
}

void logical(const Call& call, const char* op) {
  call.result(call.to.node(op, {call.in(0, DType::boolean), call.in(1, DType::boolean)}));
}

void logical_and(const Call& call) {
  logical(call, "And");
}

void logical_or(const Call& call) {
  logical(call, "Or");
}

void logical_xor(const Call& call) {
  logical(call, "Xor");
}

void logical_not(const Call& call) {
  call.result(call.to.node("Not", {call.in(0, DType::boolean)}));
}

// What Where computes with in every runtime.
DType chosen_dtype(DType dtype) {
  if (dtype == DType::f64 || dtype == DType::u8) return dtype;
  return dtype == DType::boolean ? DType::u8 : compute_dtype(dtype);
}

void where(const Call& call) {
  const DType dtype = chosen_dtype(call.result_value().dtype);
  call.result(call.to.node("Where", {call.in(0), call.in(1, dtype), call.in(2, dtype)}), dtype);
}

void unary(const Call& call, const char* op) {
  const DType dtype = computed(call);
  call.result(call.to.node(op, {call.in(0, dtype)}), dtype);
}

template <const auto& Name>
void plain(const Call& call) {
  unary(call, Name);
}

// Integers are their own floor.
template <const auto& Name>
void rounding(const Call& call) {
  if (computed(call) == DType::i64) return call.result(call.in(0));
  unary(call, Name);
}

void square(const Call& call) {
  const DType dtype = computed(call);
  const std::string x = call.in(0, dtype);
  call.result(call.to.node("Mul", {x, x}), dtype);
}

void rsqrt(const Call& call) {
  const DType dtype = computed(call);
  call.result(call.to.node("Reciprocal", {call.to.node("Sqrt", {call.in(0, dtype)})}), dtype);
}

void trunc(const Call& call) {
  const DType dtype = computed(call);
  if (dtype == DType::i64) return call.result(call.in(0));
  const std::string x = call.in(0, dtype);
  const std::string negative = call.to.node("Less", {x, call.to.real(0, dtype)});
  call.result(call.to.node("Where", {negative, call.to.node("Ceil", {x}), call.to.node("Floor", {x})}),
              dtype);
}

// exp(x) - 1 loses everything near 0, where 2 t / (1 - t) with t = tanh(x / 2) does not.
void expm1(const Call& call) {
  const DType dtype = computed(call);
  Lowering& to = call.to;
  const std::string x = call.in(0, dtype);
  const std::string t = to.node("Tanh", {to.node("Mul", {x, to.real(0.5, dtype)})});
  const std::string near = to.node("Div", {to.node("Add", {t, t}), to.node("Sub", {to.real(1, dtype), t})});
  const std::string far = to.node("Sub", {to.node("Exp", {x}), to.real(1, dtype)});
  const std::string close = to.node("Less", {to.node("Abs", {x}), to.real(0.5, dtype)});
  call.result(to.node("Where", {close, near, far}), dtype);
}

// log(u) * x / (u - 1) with u = 1 + x takes back what the addition lost; x itself when nothing is left of it.
void log1p(const Call& call) {
  const DType dtype = computed(call);
  Lowering& to = call.to;
  const std::string x = call.in(0, dtype);
  const std::string one = to.real(1, dtype);
  const std::string u = to.node("Add", {x, one});
  const std::string close = to.node("Less", {to.node("Abs", {x}), to.real(0.5, dtype)});
  const std::string same = to.node("Equal", {u, one});
  const std::string rest = to.node("Where", {same, one, to.node("Sub", {u, one})});
  const std::string near =
      to.node("Where", {same, x, to.node("Div", {to.node("Mul", {to.node("Log", {u}), x}), rest})});
  call.result(to.node("Where", {close, near, to.node("Log", {u})}), dtype);
}

void isnan(const Call& call) {
  if (is_floating(call.value(0).dtype)) {
    const DType dtype = call.value(0).dtype == DType::f64 ? DType::f64 : DType::f32;
    return call.result(call.to.node("IsNaN", {call.in(0, dtype)}));
  }
  const Pair pair = compared(call);
  call.result(call.to.node("Not", {call.to.node("Equal", {pair.a, pair.b})}));
}

void log2(const Call& call) {
  const DType dtype = computed(call);
  const std::string natural = call.to.node("Log", {call.in(0, dtype)});
  call.result(call.to.node("Mul", {natural, call.to.real(1 / std::log(2.0), dtype)}), dtype);
}

// Mod's own sign is the divisor's for integers alone.
void remainder(const Call& call) {
  const DType dtype = computed(call);
  Lowering& to = call.to;
  const std::string a = call.in(0, dtype);
  const std::string b = call.in(1, dtype);
  if (dtype == DType::i64) return call.result(to.node("Mod", {a, b}), dtype);
  const std::string left = to.node("Mod", {a, b}, {{"fmod", std::int64_t{1}}});
  const std::string zero = to.real(0, dtype);
  const std::string other =
      to.node("Less", {to.node("Mul", {to.node("Sign", {left}), to.node("Sign", {b})}), zero});
  call.result(to.node("Where", {other, to.node("Add", {left, b}), left}), dtype);
}

// atan(y / x), half a turn further where x is negative; 0 for the point 0.
void atan2(const Call& call) {
  const DType dtype = DType::f32;  // what runtimes have Atan for
  Lowering& to = call.to;
  const std::string y = call.in(0, dtype);
  const std::string x = call.in(1, dtype);
  const std::string zero = to.real(0, dtype);
  const double half = std::acos(-1.0);
  const std::string right = to.node("Atan", {to.node("Div", {y, x})});
  const std::string turn =
      to.node("Where", {to.node("Less", {y, zero}), to.real(-half, dtype), to.real(half, dtype)});
  const std::string left = to.node("Add", {right, turn});
  const std::string angle = to.node("Where", {to.node("Less", {x, zero}), left, right});
  const std::string at_zero = to.node("And", {to.node("Equal", {y, zero}), to.node("Equal", {x, zero})});
  call.result(to.node("Where", {at_zero, zero, angle}), dtype);
}

void clip(const Call& call, double low, double high) {
  const DType dtype = computed(call);
  Lowering& to = call.to;
  std::string x = call.in(0, dtype);
  if (dtype != DType::i64) {
    x = to.node("Clip", {x, low == -kInfinity ? "" : to.real(low, dtype),
                         high == kInfinity ? "" : to.real(high, dtype)});
    return call.result(x, dtype);
  }
  const auto bounded = [&](const char* op, double bound) {
    const std::string edge = to.real(bound, dtype);
    x = to.node("Where", {to.node(op, {x, edge}), edge, x});
  };
  if (low != -kInfinity) bounded("Less", low);
  if (high != kInfinity) bounded("Greater", high);
  call.result(x, dtype);
}

void clamp(const Call& call) {
  clip(call, call.real("low"), call.real("high"));
}

void relu6(const Call& call) {
  clip(call, 0, 6);
}

void relu(const Call& call) {
  if (computed(call) != DType::i64) return unary(call, "Relu");
  const std::string x = call.in(0, DType::i64);
  const std::string zero = call.to.scalar(0);
  call.result(call.to.node("Where", {call.to.node("Less", {x, zero}), zero, x}), DType::i64);
}

// The model's own, so that it rounds.
void cast(const Call& call) {
  const GraphValue& x = call.value(0);
  const DType dtype = call.result_value().dtype;
  call.result(x.kind == GraphValue::Kind::result ? call.to.cast(call.in(0), x.dtype, dtype)
                                                 : call.in(0, dtype));
}

constexpr char kNeg[] = "Neg";
constexpr char kAbs[] = "Abs";
constexpr char kSign[] = "Sign";
constexpr char kExp[] = "Exp";
constexpr char kLog[] = "Log";
constexpr char kSqrt[] = "Sqrt";
constexpr char kReciprocal[] = "Reciprocal";
constexpr char kSin[] = "Sin";
constexpr char kCos[] = "Cos";
constexpr char kTan[] = "Tan";
constexpr char kErf[] = "Erf";
constexpr char kFloor[] = "Floor";
constexpr char kCeil[] = "Ceil";
constexpr char kRound[] = "Round";

}  // namespace

void add_elementwise(TranslateTable& table) {
  table.insert({{&operations::add, add},
                {&operations::sub, sub},
                {&operations::mul, mul},
                {&operations::div, div},
                {&operations::pow, pow},
                {&operations::minimum, minimum},
                {&operations::maximum, maximum},
                {&operations::remainder, remainder},
                {&operations::atan2, atan2},
                {&operations::log2, log2},
                {&operations::prelu, prelu},
                {&operations::eq, eq},
                {&operations::ne, ne},
                {&operations::lt, lt},
                {&operations::le, le},
                {&operations::gt, gt},
                {&operations::ge, ge},
                {&operations::isinf, eq},
                {&operations::isnan, isnan},
                {&operations::logical_and, logical_and},
                {&operations::logical_or, logical_or},
                {&operations::logical_xor, logical_xor},
                {&operations::logical_not, logical_not},
                {&operations::where, where},
                {&operations::neg, plain<kNeg>},
                {&operations::abs, plain<kAbs>},
                {&operations::sign, plain<kSign>},
                {&operations::square, square},
                {&operations::exp, plain<kExp>},
                {&operations::expm1, expm1},
                {&operations::log, plain<kLog>},
                {&operations::log1p, log1p},
                {&operations::sqrt, plain<kSqrt>},
                {&operations::rsqrt, rsqrt},
                {&operations::reciprocal, plain<kReciprocal>},
                {&operations::sin, plain<kSin>},
                {&operations::cos, plain<kCos>},
                {&operations::tan, plain<kTan>},
                {&operations::erf, plain<kErf>},
                {&operations::floor, rounding<kFloor>},
                {&operations::ceil, rounding<kCeil>},
                {&operations::round, rounding<kRound>},
                {&operations::trunc, trunc},
                {&operations::clamp, clamp},
                {&operations::relu6, relu6},
                {&operations::hardtanh, clamp},
                {&operations::relu, relu},
                {&operations::cast, cast}});
}

}  // namespace ballast::onnx
