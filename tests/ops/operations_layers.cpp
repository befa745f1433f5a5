// SPDX-License-Identifier: Apache-2.0
// The operations of layers, called as a case says.
#include "ops/cases.h"

namespace ballast::ops_tests {
namespace {

using Map = std::map<std::string, Run>;

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

Map products() {
  return {{"add_activated",
           [](const Tensors& in, const Json& a) -> Tensors { return {add(in[0], in[1], activation_of(a))}; }},
          {"matmul", [](const Tensors& in, const Json&) -> Tensors { return {matmul(in[0], in[1])}; }},
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

std::map<std::string, Run> layer_operations() {
  Map all = products();
  for (Map part : {pools_and_norms(), recurrent()}) all.merge(part);
  return all;
}

}  // namespace ballast::ops_tests
