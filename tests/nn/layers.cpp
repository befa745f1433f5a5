// SPDX-License-Identifier: Apache-2.0
#include "nn/layers.h"

namespace ballast::nn_tests {
namespace {

template <class Layer>
RunLayer without_options() {
  return [](const Case& one) { return run_one_input(one, Layer{}); };
}

template <class Make>
RunLayer made_by(Make make) {
  return [make](const Case& one) { return run_one_input(one, make(one.args)); };
}

Layers activations() {
  const auto real = [](const Json& a, const char* name) { return a[name].get<double>(); };
  return {
      {"ReLU", without_options<nn::ReLU>()},
      {"ReLU6", without_options<nn::ReLU6>()},
      {"SELU", without_options<nn::SELU>()},
      {"SiLU", without_options<nn::SiLU>()},
      {"Mish", without_options<nn::Mish>()},
      {"Sigmoid", without_options<nn::Sigmoid>()},
      {"LogSigmoid", without_options<nn::LogSigmoid>()},
      {"Tanh", without_options<nn::Tanh>()},
      {"Softsign", without_options<nn::Softsign>()},
      {"Hardswish", without_options<nn::Hardswish>()},
      {"Hardsigmoid", without_options<nn::Hardsigmoid>()},
      {"Dropout", without_options<nn::Dropout>()},
      {"Identity", without_options<nn::Identity>()},
      {"GELU", made_by([](const Json& a) {
         return nn::GELU{a["approximate"] == "tanh" ? nn::GELUApproximation::tanh
                                                    : nn::GELUApproximation::none};
       })},
      {"LeakyReLU", made_by([=](const Json& a) { return nn::LeakyReLU{real(a, "negative_slope")}; })},
      {"ELU", made_by([=](const Json& a) { return nn::ELU{real(a, "alpha")}; })},
      {"Hardtanh", made_by([=](const Json& a) {
         return nn::Hardtanh{real(a, "min_val"), real(a, "max_val")};
       })},
      {"Softplus", made_by([=](const Json& a) {
         return nn::Softplus{real(a, "beta"), real(a, "threshold")};
       })},
      {"Softmax", made_by([](const Json& a) { return nn::Softmax{integer(a, "dim")}; })},
      {"LogSoftmax", made_by([](const Json& a) { return nn::LogSoftmax{integer(a, "dim")}; })},
      {"PReLU", made_by([](const Json& a) { return nn::PReLU(integer(a, "count")); })},
  };
}

Layers linear_layers() {
  const auto size = [](const Json& a, std::size_t i) { return a["sizes"][i].get<std::int64_t>(); };
  return {
      {"Linear",
       made_by([=](const Json& a) { return nn::Linear(size(a, 0), size(a, 1), {.bias = flag(a, "bias")}); })},
      {"Bilinear",
       [=](const Case& one) -> Tensors {
         const Json& a = one.args;
         const auto model =
             loaded(one, nn::Bilinear(size(a, 0), size(a, 1), size(a, 2), {.bias = flag(a, "bias")}));
         return {model.layer.forward(input(one, 0), input(one, 1))};
       }},
      {"Embedding", made_by([=](const Json& a) { return nn::Embedding(size(a, 0), size(a, 1)); })},
  };
}

template <class Norm>
RunLayer running_norm() {
  return made_by([](const Json& a) {
    return Norm(integer(a, "features"), {.eps = a["eps"].get<double>(),
                                         .affine = flag(a, "affine"),
                                         .track_running_stats = flag(a, "track_running_stats")});
  });
}

Layers norms() {
  return {
      {"BatchNorm1d", running_norm<nn::BatchNorm1d>()},
      {"BatchNorm2d", running_norm<nn::BatchNorm2d>()},
      {"BatchNorm3d", running_norm<nn::BatchNorm3d>()},
      {"InstanceNorm1d", running_norm<nn::InstanceNorm1d>()},
      {"InstanceNorm2d", running_norm<nn::InstanceNorm2d>()},
      {"InstanceNorm3d", running_norm<nn::InstanceNorm3d>()},
      {"LayerNorm", made_by([](const Json& a) {
         return nn::LayerNorm(
             ops_tests::dims_of(a["shape"]),
             {.eps = a["eps"].get<double>(), .elementwise_affine = flag(a, "elementwise_affine")});
       })},
      {"GroupNorm", made_by([](const Json& a) {
         return nn::GroupNorm(integer(a, "groups"), integer(a, "channels"),
                              {.eps = a["eps"].get<double>(), .affine = flag(a, "affine")});
       })},
      {"RMSNorm", made_by([](const Json& a) {
         return nn::RMSNorm(integer(a, "size"), {.eps = a["eps"].get<double>()});
       })},
  };
}

}  // namespace

const Layers& layers() {
  static const Layers all = [] {
    Layers joined = activations();
    joined.merge(linear_layers());
    joined.merge(norms());
    joined.merge(spatial_layers());
    joined.merge(sequence_layers());
    joined.merge(more_layers());
    joined.merge(loss_layers());
    return joined;
  }();
  return all;
}

}  // namespace ballast::nn_tests
