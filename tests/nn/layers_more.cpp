// SPDX-License-Identifier: Apache-2.0
// The layers of layer_cases_more.py.
#include "nn/layers.h"

namespace ballast::nn_tests {
namespace {

double real(const Json& args, const char* name) {
  return args[name].get<double>();
}

std::int64_t size(const Json& args, std::size_t i) {
  return args["sizes"][i].get<std::int64_t>();
}

template <class Make>
RunLayer made_by(Make make) {
  return [make](const Case& one) { return run_one_input(one, make(one.args)); };
}

Layers activations() {
  return {{"CELU", made_by([](const Json& a) { return nn::CELU{real(a, "alpha")}; })},
          {"Hardshrink", made_by([](const Json& a) { return nn::Hardshrink{real(a, "lambd")}; })},
          {"Softshrink", made_by([](const Json& a) { return nn::Softshrink{real(a, "lambd")}; })},
          {"Tanhshrink", made_by([](const Json&) { return nn::Tanhshrink{}; })},
          {"Threshold", made_by([](const Json& a) {
             return nn::Threshold{real(a, "threshold"), real(a, "value")};
           })},
          {"GLU", made_by([](const Json& a) { return nn::GLU{integer(a, "dim")}; })},
          {"Softmin", made_by([](const Json& a) { return nn::Softmin{integer(a, "dim")}; })}};
}

template <std::size_t N>
Layers paddings() {
  const auto amounts = [](const Json& a) { return size_of<2 * N>(a["padding"]); };
  const std::string end = "Pad" + std::to_string(N) + "d";
  return {{"Constant" + end,
           made_by([=](const Json& a) { return nn::ConstantPad<N>(amounts(a), real(a, "value")); })},
          {"Zero" + end, made_by([=](const Json& a) { return nn::ZeroPad<N>(amounts(a)); })},
          {"Reflection" + end, made_by([=](const Json& a) { return nn::ReflectionPad<N>(amounts(a)); })},
          {"Replication" + end, made_by([=](const Json& a) { return nn::ReplicationPad<N>(amounts(a)); })},
          {"Circular" + end, made_by([=](const Json& a) { return nn::CircularPad<N>(amounts(a)); })}};
}

// What Unfold and Fold share.
auto with_steps(auto layer, const Json& a) {
  layer.dilation = size_of<2>(a["dilation"]);
  layer.padding = size_of<2>(a["padding"]);
  layer.stride = size_of<2>(a["stride"]);
  return layer;
}

Layers movers() {
  return {
      {"PixelShuffle", made_by([](const Json& a) { return nn::PixelShuffle{integer(a, "factor")}; })},
      {"PixelUnshuffle", made_by([](const Json& a) { return nn::PixelUnshuffle{integer(a, "factor")}; })},
      {"ChannelShuffle", made_by([](const Json& a) { return nn::ChannelShuffle{integer(a, "groups")}; })},
      {"Unflatten", made_by([](const Json& a) {
         return nn::Unflatten{integer(a, "dim"), ops_tests::dims_of(a["sizes"])};
       })},
      {"Unfold",
       made_by([](const Json& a) { return with_steps(nn::Unfold{size_of<2>(a["kernel_size"])}, a); })},
      {"Fold", made_by([](const Json& a) {
         return with_steps(nn::Fold{size_of<2>(a["output_size"]), size_of<2>(a["kernel_size"])}, a);
       })},
      {"LocalResponseNorm", made_by([](const Json& a) {
         return nn::LocalResponseNorm{integer(a, "size"), real(a, "alpha"), real(a, "beta"), real(a, "k")};
       })},
      {"RotaryEmbedding", made_by([](const Json& a) {
         return nn::RotaryEmbedding{.dim = integer(a, "dim"), .base = real(a, "base")};
       })},
      {"EmbeddingBag", [](const Case& one) -> Tensors {
         const Json& a = one.args;
         const auto mode = a["mode"] == "sum"    ? nn::EmbeddingBagMode::sum
                           : a["mode"] == "mean" ? nn::EmbeddingBagMode::mean
                                                 : nn::EmbeddingBagMode::max;
         const auto model = loaded(one, nn::EmbeddingBag(size(a, 0), size(a, 1), {.mode = mode}));
         return {model.layer.forward(input(one, 0), input(one, 1))};
       }}};
}

nn::RecurrentOptions cell_options(const Json& a) {
  nn::RecurrentOptions options{.bias = flag(a, "bias")};
  if (a.contains("nonlinearity") && a["nonlinearity"] == "relu")
    options.nonlinearity = nn::RNNNonlinearity::relu;
  return options;
}

Layers cells() {
  return {{"LSTMCell",
           [](const Case& one) -> Tensors {
             const auto model =
                 loaded(one, nn::LSTMCell(size(one.args, 0), size(one.args, 1), cell_options(one.args)));
             const nn::LSTMState state = model.layer(input(one, 0), input(one, 1), input(one, 2));
             return {state.hidden, state.cell};
           }},
          {"GRUCell",
           [](const Case& one) -> Tensors {
             const auto model =
                 loaded(one, nn::GRUCell(size(one.args, 0), size(one.args, 1), cell_options(one.args)));
             return {model.layer(input(one, 0), input(one, 1))};
           }},
          {"RNNCell", [](const Case& one) -> Tensors {
             const auto model =
                 loaded(one, nn::RNNCell(size(one.args, 0), size(one.args, 1), cell_options(one.args)));
             return {model.layer(input(one, 0), input(one, 1))};
           }}};
}

nn::TransformerOptions transformer_options(const Json& a) {
  return {.dim_feedforward = integer(a, "dim_feedforward"),
          .activation =
              a["activation"] == "relu" ? nn::TransformerActivation::relu : nn::TransformerActivation::gelu,
          .batch_first = flag(a, "batch_first"),
          .norm_first = flag(a, "norm_first")};
}

template <class Stack, class Each>
Model<Stack> stacked(const Case& one) {
  const Json& a = one.args;
  std::optional<nn::LayerNorm> norm;
  if (flag(a, "norm")) norm.emplace(integer(a, "model"));
  return loaded(one, Stack(Each(integer(a, "model"), integer(a, "heads"), transformer_options(a)),
                           integer(a, "layers"), norm));
}

Layers stacks() {
  return {{"TransformerEncoder",
           [](const Case& one) -> Tensors {
             const auto model = stacked<nn::TransformerEncoder, nn::TransformerEncoderLayer>(one);
             return {model.layer.forward(input(one, 0), {.attention = input(one, 1)})};
           }},
          {"TransformerDecoder",
           [](const Case& one) -> Tensors {
             const auto model = stacked<nn::TransformerDecoder, nn::TransformerDecoderLayer>(one);
             return {model.layer.forward(input(one, 0), input(one, 1), {.attention = input(one, 2)})};
           }},
          {"Transformer", [](const Case& one) -> Tensors {
             const Json& a = one.args;
             nn::TransformerOptions options = transformer_options(a);
             options.num_encoder_layers = integer(a, "encoders");
             options.num_decoder_layers = integer(a, "decoders");
             const auto model =
                 loaded(one, nn::Transformer(integer(a, "model"), integer(a, "heads"), options));
             return {model.layer.forward(input(one, 0), input(one, 1))};
           }}};
}

}  // namespace

Layers more_layers() {
  Layers all = activations();
  for (Layers part : {paddings<1>(), paddings<2>(), paddings<3>(), movers(), cells(), stacks()})
    all.merge(part);
  return all;
}

}  // namespace ballast::nn_tests
