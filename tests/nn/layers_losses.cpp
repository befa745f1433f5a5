// SPDX-License-Identifier: Apache-2.0
// The layers of layer_cases_losses.py.
#include "nn/layers.h"

namespace ballast::nn_tests {
namespace {

double real(const Json& args, const char* name) {
  return args[name].get<double>();
}

LossReduction reduction(const Json& a) {
  return a["reduction"] == "mean"  ? LossReduction::mean
         : a["reduction"] == "sum" ? LossReduction::sum
                                   : LossReduction::none;
}

Tensor weight(const Case& one, std::size_t i = 2) {
  return input(one, i);
}

// A loss made by make(case) of the case's first two inputs.
template <class Make>
RunLayer of_two(Make make) {
  return [make](const Case& one) -> Tensors { return {make(one)(input(one, 0), input(one, 1))}; };
}

template <class Make>
RunLayer of_three(Make make) {
  return
      [make](const Case& one) -> Tensors { return {make(one)(input(one, 0), input(one, 1), input(one, 2))}; };
}

Layers of_numbers() {
  return {{"MSELoss", of_two([](const Case& c) { return nn::MSELoss{reduction(c.args)}; })},
          {"L1Loss", of_two([](const Case& c) { return nn::L1Loss{reduction(c.args)}; })},
          {"SmoothL1Loss", of_two([](const Case& c) {
             return nn::SmoothL1Loss{real(c.args, "beta"), reduction(c.args)};
           })},
          {"HuberLoss", of_two([](const Case& c) {
             return nn::HuberLoss{real(c.args, "delta"), reduction(c.args)};
           })},
          {"KLDivLoss", of_two([](const Case& c) {
             return nn::KLDivLoss{reduction(c.args), flag(c.args, "log_target")};
           })},
          {"PoissonNLLLoss", of_two([](const Case& c) {
             return nn::PoissonNLLLoss{{.log_input = flag(c.args, "log_input"),
                                        .full = flag(c.args, "full"),
                                        .reduction = reduction(c.args)}};
           })},
          {"HingeEmbeddingLoss", of_two([](const Case& c) {
             return nn::HingeEmbeddingLoss{real(c.args, "margin"), reduction(c.args)};
           })},
          {"SoftMarginLoss", of_two([](const Case& c) { return nn::SoftMarginLoss{reduction(c.args)}; })},
          {"GaussianNLLLoss", of_three([](const Case& c) {
             return nn::GaussianNLLLoss{{.full = flag(c.args, "full"), .reduction = reduction(c.args)}};
           })}};
}

Layers of_classes() {
  return {
      {"NLLLoss", of_two([](const Case& c) {
         return nn::NLLLoss{{weight(c), integer(c.args, "ignore_index"), reduction(c.args)}};
       })},
      {"CrossEntropyLoss", of_two([](const Case& c) {
         return nn::CrossEntropyLoss{{weight(c), integer(c.args, "ignore_index"), reduction(c.args),
                                      real(c.args, "label_smoothing")}};
       })},
      {"BCELoss", of_two([](const Case& c) {
         return nn::BCELoss{{weight(c), reduction(c.args)}};
       })},
      {"BCEWithLogitsLoss", of_two([](const Case& c) {
         return nn::BCEWithLogitsLoss{{weight(c), weight(c, 3), reduction(c.args)}};
       })},
      {"MultiMarginLoss", of_two([](const Case& c) {
         return nn::MultiMarginLoss{
             {integer(c.args, "p"), real(c.args, "margin"), weight(c), reduction(c.args)}};
       })},
      {"MultiLabelMarginLoss",
       of_two([](const Case& c) { return nn::MultiLabelMarginLoss{reduction(c.args)}; })},
      {"MultiLabelSoftMarginLoss", of_two([](const Case& c) {
         return nn::MultiLabelSoftMarginLoss{{weight(c), reduction(c.args)}};
       })},
      {"CTCLoss",
       [](const Case& c) -> Tensors {
         const nn::CTCLoss loss{{integer(c.args, "blank"), flag(c.args, "zero_infinity"), reduction(c.args)}};
         return {loss(input(c, 0), input(c, 1), input(c, 2), input(c, 3))};
       }},
      {"AdaptiveLogSoftmaxWithLoss", [](const Case& c) -> Tensors {
         const Json& a = c.args;
         const auto model =
             loaded(c, nn::AdaptiveLogSoftmaxWithLoss(integer(a, "features"), integer(a, "classes"),
                                                      a["cutoffs"].get<std::vector<std::int64_t>>(),
                                                      real(a, "div_value"), flag(a, "head_bias")));
         const auto result = model.layer(input(c, 0), input(c, 1));
         const Tensor logs = model.layer.log_prob(input(c, 0));
         const bool likeliest = all(eq(model.layer.predict(input(c, 0)), argmax(logs, -1))).item<bool>();
         return likeliest ? Tensors{result.output, result.loss, logs} : Tensors{};
       }}};
}

Layers of_pairs() {
  return {{"CosineEmbeddingLoss", of_three([](const Case& c) {
             return nn::CosineEmbeddingLoss{real(c.args, "margin"), reduction(c.args)};
           })},
          {"MarginRankingLoss", of_three([](const Case& c) {
             return nn::MarginRankingLoss{real(c.args, "margin"), reduction(c.args)};
           })},
          {"TripletMarginLoss", of_three([](const Case& c) {
             return nn::TripletMarginLoss{{.margin = real(c.args, "margin"),
                                           .p = real(c.args, "p"),
                                           .swap = flag(c.args, "swap"),
                                           .reduction = reduction(c.args)}};
           })},
          {"TripletMarginWithDistanceLoss", of_three([](const Case& c) {
             return nn::TripletMarginWithDistanceLoss{{.margin = real(c.args, "margin"),
                                                       .swap = flag(c.args, "swap"),
                                                       .reduction = reduction(c.args)}};
           })}};
}

template <std::size_t N>
Layers pools() {
  const std::string end = std::to_string(N) + "d";
  Layers made = {{"MaxUnpool" + end, [](const Case& c) -> Tensors {
                    const auto kernel = size_of<N>(c.args["kernel"]);
                    const auto stride = size_of<N>(c.args["stride"]);
                    const nn::MaxPool<N> pool(kernel, {.stride = stride});
                    const MaxPooled pooled = pool.with_indices(input(c, 0));
                    const nn::MaxUnpool<N> back(kernel, {.stride = stride});
                    return {back(pooled.values, pooled.indices, ops_tests::dims_of(c.args["size"]))};
                  }}};
  if constexpr (N < 3)
    made.insert({"LPPool" + end, [](const Case& c) {
                   return run_one_input(c,
                                        nn::LPPool<N>(real(c.args, "norm_type"), size_of<N>(c.args["kernel"]),
                                                      {.stride = size_of<N>(c.args["stride"]),
                                                       .ceil_mode = flag(c.args, "ceil_mode")}));
                 }});
  return made;
}

}  // namespace

Layers loss_layers() {
  Layers all = {{"RReLU",
                 [](const Case& c) {
                   return run_one_input(c, nn::RReLU{real(c.args, "lower"), real(c.args, "upper")});
                 }},
                {"CrossMapLRN2d", [](const Case& c) {
                   return run_one_input(c, nn::CrossMapLRN2d{integer(c.args, "size"), real(c.args, "alpha"),
                                                             real(c.args, "beta"), real(c.args, "k")});
                 }}};
  for (Layers part : {of_numbers(), of_classes(), of_pairs(), pools<1>(), pools<2>(), pools<3>()})
    all.merge(part);
  return all;
}

}  // namespace ballast::nn_tests
