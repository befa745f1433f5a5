// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "../examples/mnist/mnist.h"
#include "../examples/models/bert.h"
#include "../examples/models/gpt2.h"
#include "../examples/models/lstm_tagger.h"
#include "../examples/models/mobilenet_v2.h"
#include "../examples/models/resnet.h"
#include "../examples/models/unet.h"
#include "../examples/models/vit_b_16.h"
#include "ballast/nn.h"
#include "onnx/case.h"

namespace onnx_cases {
namespace {

using namespace ballast;

/// Numbers of a size that keeps activations near 1; variances are positive.
template <class Model>
std::shared_ptr<Model> with_weights(Model model) {
  auto ready = std::make_shared<Model>(std::move(model));
  std::uint64_t seed = 1;
  for_each_tensor(*ready, [&](std::string_view path, Tensor& tensor, LayerKind) {
    Generator generator(seed++);
    if (!is_floating(tensor.dtype())) {
      tensor = zeros(tensor.shape(), tensor.dtype());
      return;
    }
    const bool positive = path.ends_with("running_var") || path.ends_with("gamma");
    const Tensor noise = rand(tensor.shape(), generator);
    const double wide = tensor.rank() > 1 ? 0.3 : 0.5;
    tensor = positive ? noise + 0.5 : (noise - 0.5) * wide;
  });
  return ready;
}

const Sizes kSmall = {{"batch", 2}, {"seq", 5}};
const Sizes kLarge = {{"batch", 3}, {"seq", 9}};

void add_transformers(std::vector<Case>& cases) {
  const InputSpec tokens{"tokens", {"batch", "seq"}, DType::i64};
  cases.push_back(model_case("gpt2", with_weights(models::Gpt2({50, 16, 24, 2, 3})), {{tokens, 0, 50}},
                             {kSmall, kLarge}));
  cases.push_back(
      model_case("bert",
                 with_weights(models::BertForSequenceClassification::make({.vocab_size = 40,
                                                                           .max_position_embeddings = 16,
                                                                           .type_vocab_size = 2,
                                                                           .hidden_size = 24,
                                                                           .intermediate_size = 32,
                                                                           .num_hidden_layers = 2,
                                                                           .num_attention_heads = 4,
                                                                           .num_labels = 3})),
                 {{tokens, 0, 40},
                  {{"types", {"batch", "seq"}, DType::i64}, 0, 2},
                  {{"words", {"batch", "seq"}, DType::boolean}}},
                 {kSmall, kLarge}));
}

void add_recurrent(std::vector<Case>& cases) {
  cases.push_back(model_case("lstm_tagger", with_weights(models::LstmTagger::make(30, 8, 6, 5)),
                             {{{"words", {"batch", "seq"}, DType::i64}, 0, 30}}, {kSmall, kLarge}));
  cases.push_back(model_case("gru", with_weights(nn::GRU(4, 3, {.num_layers = 2, .bidirectional = true})),
                             {{{"x", {"seq", "batch", 4}}}, {{"h", {4, "batch", 3}}}}, {kSmall, kLarge}));
  cases.push_back(
      model_case("rnn", with_weights(nn::RNN(4, 3, {.nonlinearity = RnnNonlinearity::relu, .bias = false})),
                 {{{"x", {"seq", "batch", 4}}}}, {kSmall, kLarge}));
  cases.push_back(model_case(
      "lstm_states", with_weights(nn::LSTM(4, 3, {.num_layers = 2})),
      {{{"x", {"seq", "batch", 4}}}, {{"h", {2, "batch", 3}}}, {{"c", {2, "batch", 3}}}}, {kSmall, kLarge}));
  cases.push_back(model_case("lstm_unbatched", with_weights(nn::LSTM(4, 3)), {{{"x", {"seq", 4}}}},
                             {{{"seq", 3}}, {{"seq", 6}}}));
}

// Their weights are large: three opsets are enough.
Case only_run(Case one) {
  one.all_opsets = false;
  one.tolerance = 1e-4;
  return one;
}

void add_images(std::vector<Case>& cases) {
  const std::vector<Sizes> two = {{{"batch", 1}}, {{"batch", 3}}};
  const CaseInput image{{"image", {"batch", 3, 64, 96}}};
  cases.push_back(
      model_case("mnist", with_weights(Mnist{}), {{{"image", {"batch", 28, 28}, DType::u8}, 0, 256}}, two));
  cases.push_back(only_run(model_case(
      "resnet_basic", with_weights(models::ResNet<models::BasicBlock, 1, 1, 1, 1>{}), {image}, two)));
  cases.push_back(only_run(model_case(
      "resnet_bottleneck", with_weights(models::ResNet<models::Bottleneck, 1, 1, 1, 1>{}),
      {{{"image", {"batch", 3, "height", "width"}}}},
      {{{"batch", 1}, {"height", 64}, {"width", 96}}, {{"batch", 2}, {"height", 75}, {"width", 50}}})));
  cases.push_back(only_run(model_case("mobilenet_v2", with_weights(models::MobileNetV2{}), {image}, two)));
  models::VitB16 vit;
  vit.encoder.layers = nn::repeat<models::VitLayer>(1);
  cases.push_back(only_run(
      model_case("vit_b_16", with_weights(std::move(vit)), {{{"image", {"batch", 3, 224, 224}}}}, two)));
  cases.push_back(model_case(
      "unet", with_weights(models::UNet::make(3, 2, 4, 2)), {{{"image", {"batch", 3, "height", "width"}}}},
      {{{"batch", 1}, {"height", 16}, {"width", 24}}, {{"batch", 2}, {"height", 32}, {"width", 8}}}));
}

struct Attending {
  nn::MultiheadAttention attention{8, 2, {.batch_first = true}};
  nn::TransformerEncoderLayer encoder{8, 2, {.dim_feedforward = 12}};
  Tensor forward(const Tensor& x) const { return attention.forward(x) + encoder.forward(x); }
};

struct Decoding {
  nn::TransformerDecoderLayer decoder{8,
                                      2,
                                      {.dim_feedforward = 12,
                                       .activation = nn::TransformerActivation::gelu,
                                       .batch_first = true,
                                       .norm_first = true}};
  nn::MultiheadAttention extended{8, 2, {.add_bias_kv = true, .add_zero_attn = true, .batch_first = true}};

  Tensor forward(const Tensor& x, const Tensor& memory, const Tensor& ignored) const {
    const Tensor y = decoder.forward(x, memory, {.causal = true}, {.key_padding = ignored});
    return extended.forward(y, memory, memory, {.key_padding = ignored});
  }
};

struct Mixed {
  nn::Sequential<nn::Conv2d, nn::GroupNorm, nn::PReLU, nn::Upsample> stem{
      {3, 4, 3}, {2, 4}, {4}, {.scale_factor = 2.0, .mode = nn::UpsampleMode::bilinear}};
  nn::InstanceNorm2d instance{4, {.affine = true}};
  nn::RMSNorm rms{12};
  nn::Bilinear bilinear{12, 12, 3};

  Tensor forward(const Tensor& x) const {
    const Tensor y = rms.forward(instance.forward(stem.forward(x)));
    return bilinear.forward(y, y * 2);
  }
};

void add_layers(std::vector<Case>& cases) {
  cases.push_back(
      model_case("decoder_layers", with_weights(Decoding{}),
                 {{{"x", {"batch", "seq", 8}}},
                  {{"memory", {"batch", "words", 8}}},
                  {{"ignored", {"batch", "words"}, DType::boolean}}},
                 {{{"batch", 2}, {"seq", 5}, {"words", 4}}, {{"batch", 1}, {"seq", 3}, {"words", 7}}}));
  cases.push_back(model_case("mixed_layers", with_weights(Mixed{}), {{{"x", {"batch", 3, 8, 8}}}},
                             {{{"batch", 1}}, {{"batch", 3}}}));
  cases.push_back(model_case("attention_layers", with_weights(Attending{}), {{{"x", {"batch", "seq", 8}}}},
                             {kSmall, kLarge}));
}

}  // namespace

void add_model_cases(std::vector<Case>& cases) {
  add_transformers(cases);
  add_recurrent(cases);
  add_images(cases);
  add_layers(cases);
}

}  // namespace onnx_cases
