// SPDX-License-Identifier: Apache-2.0
// Every operation, called as a case says: the arguments' names are those of the cases_*.py files.
#include "ops/cases.h"

namespace ballast::ops_tests {
namespace {

using Map = std::map<std::string, Run>;

template <class F>
Run binary(F function) {
  return [function](const Tensors& in, const Json& args) -> Tensors {
    if (!args.contains("number")) return {function(in[0], in[1])};
    const Json& number = args["number"];
    const Operand operand =
        number.is_number_integer() ? Operand(number.get<std::int64_t>()) : Operand(number.get<double>());
    return {args["first"].get<bool>() ? function(operand, in[0]) : function(in[0], operand)};
  };
}

template <class F>
Run along(F function) {
  return [function](const Tensors& in, const Json& args) -> Tensors {
    return {function(in[0], integer(args, "dim"))};
  };
}

template <class F>
Run reduction(F function) {
  return [function](const Tensors& in, const Json& args) -> Tensors {
    return {function(in[0], dims_of(args["dims"]), args["keepdim"].get<bool>(), args)};
  };
}

Map elementwise() {
  return {{"add", binary([](const Operand& a, const Operand& b) { return add(a, b); })},
          {"sub", binary(sub)},
          {"mul", binary(mul)},
          {"div", binary(div)},
          {"pow", binary(pow)},
          {"minimum", binary(minimum)},
          {"maximum", binary(maximum)},
          {"eq", binary(eq)},
          {"ne", binary(ne)},
          {"lt", binary(lt)},
          {"le", binary(le)},
          {"gt", binary(gt)},
          {"ge", binary(ge)},
          {"logical_and", binary(logical_and)},
          {"logical_or", binary(logical_or)},
          {"logical_xor", binary(logical_xor)},
          {"logical_not", unary(logical_not)},
          {"isnan", unary(isnan)},
          {"isinf", unary(isinf)},
          {"neg", unary(neg)},
          {"abs", unary(abs)},
          {"sign", unary(sign)},
          {"square", unary(square)},
          {"exp", unary(exp)},
          {"expm1", unary(expm1)},
          {"log", unary(log)},
          {"log1p", unary(log1p)},
          {"sqrt", unary(sqrt)},
          {"rsqrt", unary(rsqrt)},
          {"reciprocal", unary(reciprocal)},
          {"sin", unary(sin)},
          {"cos", unary(cos)},
          {"tan", unary(tan)},
          {"erf", unary(erf)},
          {"floor", unary(floor)},
          {"ceil", unary(ceil)},
          {"round", unary(round)},
          {"trunc", unary(trunc)},
          {"where", [](const Tensors& in, const Json&) -> Tensors { return {where(in[0], in[1], in[2])}; }},
          {"masked_fill",
           [](const Tensors& in, const Json& args) -> Tensors {
             return {masked_fill(in[0], in[1], number_of(args["value"]))};
           }},
          {"clamp", [](const Tensors& in, const Json& args) -> Tensors {
             const auto bound = [&](const char* name) {
               return args.contains(name) ? std::optional(args[name].get<double>()) : std::nullopt;
             };
             return {clamp(in[0], bound("low"), bound("high"))};
           }}};
}

Map activations() {
  return {{"relu", unary(relu)},
          {"relu6", unary(relu6)},
          {"gelu", unary(gelu)},
          {"gelu_tanh", unary(gelu_tanh)},
          {"silu", unary(silu)},
          {"sigmoid", unary(sigmoid)},
          {"log_sigmoid", unary(log_sigmoid)},
          {"tanh", unary(tanh)},
          {"softsign", unary(softsign)},
          {"selu", unary(selu)},
          {"hardswish", unary(hardswish)},
          {"hardsigmoid", unary(hardsigmoid)},
          {"mish", unary(mish)},
          {"softmax", along(softmax)},
          {"log_softmax", along(log_softmax)},
          {"softplus",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {softplus(in[0], number_of(a["beta"]), number_of(a["threshold"]))};
           }},
          {"elu",
           [](const Tensors& in, const Json& a) -> Tensors { return {elu(in[0], number_of(a["alpha"]))}; }},
          {"leaky_relu",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {leaky_relu(in[0], number_of(a["slope"]))};
           }},
          {"hardtanh",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {hardtanh(in[0], number_of(a["low"]), number_of(a["high"]))};
           }},
          {"prelu", [](const Tensors& in, const Json&) -> Tensors { return {prelu(in[0], in[1])}; }}};
}

template <class F>
Run place(F function) {
  return [function](const Tensors& in, const Json& args) -> Tensors {
    return {function(in[0], args.contains("dim") ? std::optional(integer(args, "dim")) : std::nullopt,
                     args["keepdim"].get<bool>())};
  };
}

Map reductions() {
  return {
      {"sum", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return sum(x, d, k); })},
      {"prod", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return prod(x, d, k); })},
      {"mean", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return mean(x, d, k); })},
      {"var", reduction([](const Tensor& x, const Dims& d, bool k, const Json& a) {
         return var(x, d, k, integer(a, "correction"));
       })},
      {"stddev", reduction([](const Tensor& x, const Dims& d, bool k, const Json& a) {
         return stddev(x, d, k, integer(a, "correction"));
       })},
      {"norm", reduction([](const Tensor& x, const Dims& d, bool k, const Json& a) {
         return norm(x, number_of(a["p"]), d, k);
       })},
      {"logsumexp",
       reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return logsumexp(x, d, k); })},
      {"max", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return max(x, d, k); })},
      {"min", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return min(x, d, k); })},
      {"any", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return any(x, d, k); })},
      {"all", reduction([](const Tensor& x, const Dims& d, bool k, const Json&) { return all(x, d, k); })},
      {"argmax", place(argmax)},
      {"argmin", place(argmin)},
      {"cumsum", along(cumsum)},
      {"sort",
       [](const Tensors& in, const Json& a) -> Tensors {
         Sorted sorted = sort(in[0], integer(a, "dim"), a["descending"].get<bool>());
         return {sorted.values, sorted.indices};
       }},
      {"topk",
       [](const Tensors& in, const Json& a) -> Tensors {
         Sorted sorted = topk(in[0], integer(a, "k"), integer(a, "dim"), a["largest"].get<bool>());
         return {sorted.values, sorted.indices};
       }},
      {"arange",
       [](const Tensors&, const Json& a) -> Tensors {
         if (!a["float"].get<bool>())
           return {arange(integer(a, "start"), integer(a, "stop"), integer(a, "step"))};
         return {arange(number_of(a["start"]), number_of(a["stop"]), number_of(a["step"]), DType::f32)};
       }},
      {"full",
       [](const Tensors&, const Json& a) -> Tensors {
         return {full(dims_of(a["shape"]), number_of(a["value"]),
                      dtype_from_code(a["dtype"].get<std::string>()).value())};
       }},
      {"eye",
       [](const Tensors&, const Json& a) -> Tensors {
         return {eye(integer(a, "rows"), integer(a, "columns"),
                     dtype_from_code(a["dtype"].get<std::string>()).value())};
       }},
      {"linspace", [](const Tensors&, const Json& a) -> Tensors {
         return {linspace(number_of(a["start"]), number_of(a["stop"]), integer(a, "steps"))};
       }}};
}

Map movement() {
  return {
      {"concat", [](const Tensors& in, const Json& a) -> Tensors { return {concat(in, integer(a, "dim"))}; }},
      {"stack", [](const Tensors& in, const Json& a) -> Tensors { return {stack(in, integer(a, "dim"))}; }},
      {"split",
       [](const Tensors& in, const Json& a) -> Tensors {
         return a.contains("size") ? split(in[0], integer(a, "size"), integer(a, "dim"))
                                   : split(in[0], dims_of(a["sizes"]), integer(a, "dim"));
       }},
      {"chunk",
       [](const Tensors& in, const Json& a) -> Tensors {
         return chunk(in[0], integer(a, "count"), integer(a, "dim"));
       }},
      {"flatten",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {flatten(in[0], integer(a, "start"), integer(a, "end"))};
       }},
      {"pad",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {pad(in[0], dims_of(a["pads"]), pad_mode(a), number_of(a["value"]))};
       }},
      {"gather",
       [](const Tensors& in, const Json& a) -> Tensors { return {gather(in[0], integer(a, "dim"), in[1])}; }},
      {"scatter",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {scatter(in[0], integer(a, "dim"), in[1],
                         a.contains("number") ? Operand(integer(a, "number")) : Operand(in[2]))};
       }},
      {"index_select",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {index_select(in[0], integer(a, "dim"), in[1])};
       }},
      {"embedding", [](const Tensors& in, const Json&) -> Tensors { return {embedding(in[0], in[1])}; }},
      {"flip", [](const Tensors& in, const Json& a) -> Tensors { return {flip(in[0], dims_of(a["dims"]))}; }},
      {"roll",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {roll(in[0], dims_of(a["shifts"]), dims_of(a["dims"]))};
       }},
      {"tril",
       [](const Tensors& in, const Json& a) -> Tensors { return {tril(in[0], integer(a, "diagonal"))}; }},
      {"triu",
       [](const Tensors& in, const Json& a) -> Tensors { return {triu(in[0], integer(a, "diagonal"))}; }},
      {"repeat",
       [](const Tensors& in, const Json& a) -> Tensors { return {repeat(in[0], dims_of(a["repeats"]))}; }},
      {"repeat_interleave",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {repeat_interleave(in[0], integer(a, "repeats"), integer(a, "dim"))};
       }},
      {"pixel_shuffle",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {pixel_shuffle(in[0], integer(a, "factor"))};
       }},
      {"pixel_unshuffle",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {pixel_unshuffle(in[0], integer(a, "factor"))};
       }},
      {"one_hot",
       [](const Tensors& in, const Json& a) -> Tensors { return {one_hot(in[0], integer(a, "classes"))}; }},
      {"resize", [](const Tensors& in, const Json& a) -> Tensors {
         ResizeArgs args{.mode = a["mode"] == "nearest"
                                     ? ResizeMode::nearest
                                     : (a["mode"] == "linear" ? ResizeMode::linear : ResizeMode::cubic),
                         .align_corners = a["align"].get<bool>()};
         if (a.contains("size"))
           args.size = dims_of(a["size"]);
         else
           args.scale = a["scale"].get<std::vector<double>>();
         return {resize(in[0], args)};
       }}};
}

}  // namespace

const std::map<std::string, Run>& operations() {
  static const Map all = [] {
    Map joined;
    for (Map part : {elementwise(), activations(), reductions(), movement(), layer_operations(),
                     more_operations(), loss_operations(), box_operations()})
      joined.merge(part);
    return joined;
  }();
  return all;
}

}  // namespace ballast::ops_tests
