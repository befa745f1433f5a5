// SPDX-License-Identifier: Apache-2.0
// Every operation, called as a case says: the arguments' names are those of the cases_*.py files.
#include "ops/cases.h"

namespace ballast::ops_tests {
namespace {

using Map = std::map<std::string, Run>;

std::int64_t integer(const Json& args, const char* name) {
  return args[name].get<std::int64_t>();
}

template <class F>
Run unary(F function) {
  return [function](const Tensors& in, const Json&) -> Tensors { return {function(in[0])}; };
}

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

Activation activation_of(const Json& args) {
  using Kind = Activation::Kind;
  static const std::map<std::string, Activation> kinds = {{"none", {}},
                                                          {"relu", Kind::relu},
                                                          {"relu6", Kind::relu6},
                                                          {"gelu", Kind::gelu},
                                                          {"gelu_tanh", Kind::gelu_tanh},
                                                          {"silu", Kind::silu},
                                                          {"sigmoid", Kind::sigmoid},
                                                          {"tanh", Kind::tanh},
                                                          {"leaky_relu", {Kind::leaky_relu, 0.1}},
                                                          {"elu", {Kind::elu, 0.5}},
                                                          {"hardswish", Kind::hardswish},
                                                          {"hardsigmoid", Kind::hardsigmoid},
                                                          {"mish", Kind::mish}};
  return kinds.at(args["activation"]);
}

PadMode pad_mode(const Json& args) {
  static const std::map<std::string, PadMode> modes = {{"constant", PadMode::constant},
                                                       {"reflect", PadMode::reflect},
                                                       {"replicate", PadMode::replicate},
                                                       {"circular", PadMode::circular}};
  return modes.at(args["mode"]);
}

Map elementwise() {
  return {{"add", binary(add)},
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

Map products() {
  return {{"matmul", [](const Tensors& in, const Json&) -> Tensors { return {matmul(in[0], in[1])}; }},
          {"linear",
           [](const Tensors& in, const Json& a) -> Tensors {
             OpCache cache;
             const LinearArgs cached{activation_of(a), &cache};
             // Both ways at once: the one with a cache is the result, the other must agree with it below.
             Tensor once = linear(in[0], in[1], in[2], {activation_of(a)});
             static_cast<void>(linear(in[0], in[1], in[2], cached));
             Tensor again = linear(in[0], in[1], in[2], cached);
             return error_of(once, again) <= tolerance(once.dtype()) ? Tensors{again} : Tensors{};
           }},
          {"bilinear",
           [](const Tensors& in, const Json&) -> Tensors { return {bilinear(in[0], in[1], in[2], in[3])}; }},
          {"conv",
           [](const Tensors& in, const Json& a) -> Tensors {
             OpCache cache;
             const ConvArgs args{.stride = dims_of(a["stride"]),
                                 .padding = dims_of(a["padding"]),
                                 .same = a["same"].get<bool>(),
                                 .dilation = dims_of(a["dilation"]),
                                 .groups = integer(a, "groups"),
                                 .padding_mode = pad_mode(a),
                                 .activation = activation_of(a),
                                 .cache = &cache};
             static_cast<void>(conv(in[0], in[1], in[2], args));
             return {conv(in[0], in[1], in[2], args)};
           }},
          {"conv_transpose",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {conv_transpose(in[0], in[1], in[2],
                                    {.stride = dims_of(a["stride"]),
                                     .padding = dims_of(a["padding"]),
                                     .output_padding = dims_of(a["output_padding"]),
                                     .dilation = dims_of(a["dilation"]),
                                     .groups = integer(a, "groups")})};
           }},
          {"scaled_dot_product_attention", [](const Tensors& in, const Json& a) -> Tensors {
             AttentionArgs args{
                 .mask = in[3], .causal = a["causal"].get<bool>(), .query_offset = integer(a, "offset")};
             if (a.contains("scale")) args.scale = a["scale"].get<double>();
             return {scaled_dot_product_attention(in[0], in[1], in[2], args)};
           }}};
}

Map pools_and_norms() {
  return {{"max_pool",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {max_pool(in[0], dims_of(a["kernel"]),
                              {.stride = dims_of(a["stride"]),
                               .padding = dims_of(a["padding"]),
                               .dilation = dims_of(a["dilation"]),
                               .ceil_mode = a["ceil"].get<bool>()})};
           }},
          {"avg_pool",
           [](const Tensors& in, const Json& a) -> Tensors {
             AvgPoolArgs args{.stride = dims_of(a["stride"]),
                              .padding = dims_of(a["padding"]),
                              .ceil_mode = a["ceil"].get<bool>(),
                              .count_include_pad = a["include"].get<bool>()};
             if (a.contains("divisor")) args.divisor_override = integer(a, "divisor");
             return {avg_pool(in[0], dims_of(a["kernel"]), args)};
           }},
          {"adaptive_avg_pool",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {adaptive_avg_pool(in[0], dims_of(a["out"]))};
           }},
          {"adaptive_max_pool",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {adaptive_max_pool(in[0], dims_of(a["out"]))};
           }},
          {"global_avg_pool", unary(global_avg_pool)},
          {"global_max_pool", unary(global_max_pool)},
          {"batch_norm",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {batch_norm(in[0], in[1], in[2], in[3], in[4], number_of(a["eps"]))};
           }},
          {"layer_norm",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {layer_norm(in[0], dims_of(a["normalized"]), in[1], in[2], number_of(a["eps"]))};
           }},
          {"rms_norm",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {rms_norm(in[0], dims_of(a["normalized"]), in[1],
                              a.contains("eps") ? std::optional(number_of(a["eps"])) : std::nullopt)};
           }},
          {"group_norm",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {group_norm(in[0], integer(a, "groups"), in[1], in[2], number_of(a["eps"]))};
           }},
          {"instance_norm", [](const Tensors& in, const Json& a) -> Tensors {
             return {instance_norm(in[0], in[1], in[2], number_of(a["eps"]))};
           }}};
}

std::vector<RecurrentWeights> recurrent_weights(const Tensors& in) {
  std::vector<RecurrentWeights> weights;
  for (std::size_t i = 3; i < in.size(); i += 5)
    weights.push_back({in[i], in[i + 1], in[i + 2], in[i + 3], in[i + 4]});
  return weights;
}

RecurrentArgs recurrent_args(const Json& a) {
  return {a["bidirectional"].get<bool>(), a["batch_first"].get<bool>()};
}

Map recurrent() {
  return {{"lstm",
           [](const Tensors& in, const Json& a) -> Tensors {
             LstmResult r = lstm(in[0], recurrent_weights(in), in[1], in[2], recurrent_args(a));
             return {r.output, r.hidden, r.cell};
           }},
          {"gru",
           [](const Tensors& in, const Json& a) -> Tensors {
             RecurrentResult r = gru(in[0], recurrent_weights(in), in[1], recurrent_args(a));
             return {r.output, r.hidden};
           }},
          {"rnn", [](const Tensors& in, const Json& a) -> Tensors {
             const RnnNonlinearity kind =
                 a["nonlinearity"] == "relu" ? RnnNonlinearity::relu : RnnNonlinearity::tanh;
             RecurrentResult r = rnn(in[0], recurrent_weights(in), in[1], kind, recurrent_args(a));
             return {r.output, r.hidden};
           }}};
}

}  // namespace

const std::map<std::string, Run>& operations() {
  static const Map all = [] {
    Map joined;
    for (Map part :
         {elementwise(), activations(), reductions(), movement(), products(), pools_and_norms(), recurrent()})
      joined.merge(part);
    return joined;
  }();
  return all;
}

}  // namespace ballast::ops_tests
