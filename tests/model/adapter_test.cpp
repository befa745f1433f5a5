// SPDX-License-Identifier: Apache-2.0
#include "model/adapter.h"

#include <random>
#include <set>

#include "ballast/safetensors.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One of every kind, in every shape their options allow.
struct Zoo {
  nn::Linear linear{3, 2};
  nn::Bilinear bilinear{2, 3, 4};
  nn::Conv1d conv1{2, 4, 3, {.groups = 2}};
  nn::Conv2d conv2{3, 4, {2, 5}};
  nn::Conv3d conv3{1, 2, {2, 3, 4}, {.bias = false}};
  nn::ConvTranspose1d up1{2, 4, 3};
  nn::ConvTranspose2d up2{4, 6, {2, 3}, {.groups = 2}};
  nn::ConvTranspose3d up3{1, 2, 2};
  nn::BatchNorm2d batch{5};
  nn::LayerNorm layer{Shape{2, 3}};
  nn::GroupNorm group{2, 6};
  nn::InstanceNorm2d instance{4, {.affine = true, .track_running_stats = true}};
  nn::RMSNorm rms{4};
  nn::Embedding embedding{6, 3};
  nn::PReLU prelu{3};
  nn::LSTM lstm{3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2}};
  nn::GRU gru{3, 4, {.num_layers = 2}};
  nn::RNN rnn{3, 4, {.bias = false}};
  nn::LSTMCell lstm_cell{3, 4};
  nn::GRUCell gru_cell{3, 4};
  nn::RNNCell rnn_cell{3, 4, {.bias = false}};
  nn::EmbeddingBag bag{6, 3};
  nn::MultiheadAttention attention{4, 2};
  nn::MultiheadAttention wide{4, 2, {.bias = false, .add_bias_kv = true, .kdim = 3, .vdim = 5}};
  nn::TransformerEncoderLayer encoder{4, 2, {.dim_feedforward = 8}};
  nn::TransformerDecoderLayer decoder{4, 2, {.dim_feedforward = 8}};
  nn::Transformer both{4, 2, {.num_encoder_layers = 2, .num_decoder_layers = 1, .dim_feedforward = 8}};
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear> head{{4, 3}, {}, {3, 1}};
  Tensor bare{DType::f32, {2, 2}};
};

template <class Model>
void fill(Model& model, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for_each_tensor(model, [&](std::string_view, Tensor& tensor, LayerKind) {
    if (tensor.dtype() == DType::i64) {
      tensor = Tensor::from<std::int64_t>({static_cast<std::int64_t>(random() % 1000)}, {});
      return;
    }
    std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
    for (float& value : values) value = normal(random);
    tensor = Tensor::from(std::span<const float>(values), tensor.shape());
  });
}

template <class Model>
void expect_round_trip(Adapter adapter) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    Model original;
    fill(original, seed);
    const Checkpoint foreign = to_checkpoint(original, adapter);
    Model copy;
    // Through bytes, so that nothing is the same only because it is the same storage.
    const auto bytes = std::make_shared<std::vector<std::byte>>(safetensors::serialize(foreign));
    const LoadReport report = load(copy,
                                   safetensors::parse(Storage::borrow(static_cast<const void*>(bytes->data()),
                                                                      bytes->size(), [bytes] {})),
                                   {.unused = OnUnused::error});
    EXPECT_TRUE(report.complete());
    std::map<std::string, Tensor> expected;
    for_each_tensor(original, [&](std::string_view path, const Tensor& tensor, LayerKind) {
      expected.emplace(path, tensor);
    });
    for_each_tensor(copy, [&](std::string_view path, const Tensor& tensor, LayerKind) {
      EXPECT_TRUE(same_values(tensor, expected.at(std::string(path)))) << path;
    });
  }
}

TEST(Adapter, TheZooHasEveryKind) {
  std::set<LayerKind> kinds;
  for_each_tensor(Zoo{}, [&](std::string_view, const Tensor&, LayerKind kind) { kinds.insert(kind); });
  EXPECT_EQ(kinds.size(), kLayerKindCount);
}

TEST(Adapter, NativeToPytorchAndBackIsTheIdentity) {
  expect_round_trip<Zoo>(Adapter::pytorch);
}

TEST(Adapter, NativeToNativeIsTheIdentity) {
  expect_round_trip<Zoo>(Adapter::none);
}

struct OneDirection {
  nn::Linear linear{3, 2};
  nn::Conv1d conv1{2, 4, 3, {.groups = 2}};
  nn::Conv2d conv2{3, 4, {2, 5}};
  nn::ConvTranspose2d up2{4, 6, {2, 3}};
  nn::LayerNorm layer{3};
  nn::RMSNorm rms{4};
  nn::Embedding embedding{6, 3};
  nn::PReLU prelu;
  nn::LSTM lstm{3, 4};
  nn::GRU gru{3, 4};
};

struct BurnZoo {
  OneDirection base;
  nn::MultiheadAttention attention{4, 2};
  nn::InstanceNorm2d instance{4, {.affine = true}};
};

TEST(Adapter, NativeToBurnAndBackIsTheIdentity) {
  expect_round_trip<BurnZoo>(Adapter::burn);
}

struct Biasless {
  nn::Linear linear{3, 2};
  nn::Conv1d conv1{2, 4, 3, {.groups = 2}};
  nn::Conv3d conv3{3, 4, {2, 5, 3}};
  nn::ConvTranspose2d up2{4, 6, {2, 3}};
  nn::LayerNorm layer{3};
  nn::RMSNorm rms{4};
  nn::Embedding embedding{6, 3};
  nn::PReLU prelu;
  nn::LSTM lstm{3, 4, {.bias = false}};  // with biases Flax and Keras keep only their sum
  nn::GRU gru{3, 4, {.bias = false}};
};

TEST(Adapter, NativeToFlaxAndBackIsTheIdentity) {
  expect_round_trip<Biasless>(Adapter::flax);
}

TEST(Adapter, NativeToKerasAndBackIsTheIdentity) {
  expect_round_trip<Biasless>(Adapter::keras);
}

TEST(Adapter, PytorchNames) {
  struct Model {
    nn::BatchNorm2d bn{2};
    nn::Linear fc{3, 2};
    nn::PReLU act;
    nn::MultiheadAttention attn{2, 1};
    nn::MultiheadAttention wide{2, 1, {.bias = false, .kdim = 3}};
  } model;

  fill(model, 1);
  std::vector<std::string> names;
  for (const Entry& entry : to_checkpoint(model))
    names.push_back(std::string(entry.name) + " " + to_string(entry.shape));
  // The state_dict of the same model in PyTorch 1.13, keys in another order.
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "bn.weight [2]", "bn.bias [2]", "bn.running_mean [2]", "bn.running_var [2]",
                         "bn.num_batches_tracked []", "fc.weight [2, 3]", "fc.bias [2]", "act.weight [1]",
                         "attn.in_proj_weight [6, 2]", "attn.in_proj_bias [6]", "attn.out_proj.weight [2, 2]",
                         "attn.out_proj.bias [2]", "wide.q_proj_weight [2, 2]", "wide.k_proj_weight [2, 3]",
                         "wide.v_proj_weight [2, 2]", "wide.out_proj.weight [2, 2]"));
}

TEST(Adapter, LinearIsATransposedViewAndNotACopy) {
  struct Model {
    nn::Linear fc{3, 2, {.bias = false}};
  } model;

  const Checkpoint file = checkpoint({{"fc.weight", {2, 3}}});
  const LoadReport report = load(model, file);
  EXPECT_EQ(model.fc.weight.storage(), file.tensor("fc.weight").storage());
  EXPECT_EQ(floats(model.fc.weight), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(report.adapted[0].detail, "transposed");
  Model as_is;
  EXPECT_THAT(failed_load(as_is, file, {.adapter = Adapter::none}).text(),
              HasSubstr("transpose of the model's"));
}

TEST(Adapter, LinearOfEveryDtypeIsTransposedAndKeepsIt) {
  struct Model {
    nn::Linear fc{3, 2, {.bias = false}};
  };

  Checkpoint file;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    file = Checkpoint{};
    file.add("fc.weight", counting({2, 3}, 1).to(dtype));
    Model model;
    load(model, file);
    EXPECT_EQ(model.fc.weight.dtype(), dtype);
    EXPECT_EQ(floats(model.fc.weight), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  }
}

TEST(Adapter, FoundUnderAnotherNameIsNotUnused) {
  struct Model {
    nn::LayerNorm a{2};
    nn::RMSNorm b{2};
    nn::GroupNorm c{1, 2};
  } model;

  const LoadReport report = load(
      model,
      checkpoint({{"a.weight", {2}}, {"a.bias", {2}}, {"b.weight", {2}}, {"c.gamma", {2}}, {"c.bias", {2}}}));
  EXPECT_THAT(report.unused, IsEmpty());
  EXPECT_EQ(report.applied[0].source, "a.weight");
  EXPECT_EQ(report.applied[0].target, "a.gamma");
}

TEST(Adapter, NormLikeNamesOfOtherStructsStay) {
  struct Impostor {
    Tensor weight{DType::f32, {2, 3}};
    Tensor bias;
  };

  struct Model {
    Impostor norm;
  } model;

  const Checkpoint file = checkpoint({{"norm.weight", {2, 3}}, {"norm.bias", {2}}});
  EXPECT_THAT(load(model, file).adapted, IsEmpty());
  EXPECT_TRUE(same_values(model.norm.weight, file.tensor("norm.weight")));
}

TEST(Adapter, AttentionWrittenWithFourLinears) {
  struct Model {
    nn::MultiheadAttention attn{2, 1};
  } model;

  const Checkpoint file = checkpoint({{"attn.q_proj.weight", {2, 2}},
                                      {"attn.q_proj.bias", {2}},
                                      {"attn.k_proj.weight", {2, 2}},
                                      {"attn.k_proj.bias", {2}},
                                      {"attn.v_proj.weight", {2, 2}},
                                      {"attn.v_proj.bias", {2}},
                                      {"attn.out_proj.weight", {2, 2}},
                                      {"attn.out_proj.bias", {2}}});
  EXPECT_TRUE(load(model, file, {.unused = OnUnused::error}).complete());
  EXPECT_EQ(floats(model.attn.key.weight.t()), floats(file.tensor("attn.k_proj.weight")));
}

TEST(Adapter, WeightNormInBothSpellings) {
  struct Model {
    nn::Conv1d conv{2, 2, 1, {.bias = false}};
    nn::Linear fc{2, 1, {.bias = false}};
  } model;

  Checkpoint file;
  file.add("conv.weight_g", Tensor::from<float>({10, 26}, {2, 1, 1}));
  file.add("conv.weight_v", Tensor::from<float>({3, 4, 5, 12}, {2, 2, 1}));
  file.add("fc.parametrizations.weight.original0", Tensor::from<float>({5}, {1, 1}));
  file.add("fc.parametrizations.weight.original1", Tensor::from<float>({6, 8}, {1, 2}));
  const LoadReport report = load(model, file, {.unused = OnUnused::error});
  EXPECT_EQ(floats(model.conv.weight), (std::vector<float>{6, 8, 10, 24}));
  EXPECT_EQ(floats(model.fc.weight), (std::vector<float>{3, 4}));
  EXPECT_EQ(model.fc.weight.shape(), (Shape{2, 1}));
  EXPECT_EQ(report.applied[0].source, "conv.weight_g + conv.weight_v");
  EXPECT_EQ(report.adapted[1].detail, "weight_norm, transposed");
}

TEST(Adapter, FlaxKernelsAndCollections) {
  struct Model {
    nn::Conv2d conv{2, 3, {1, 2}};
    nn::BatchNorm2d bn{3};
    nn::Linear dense{3, 2};
  } model;

  Checkpoint file = checkpoint({{"params/conv/kernel", {1, 2, 2, 3}},
                                {"params/conv/bias", {3}},
                                {"params/bn/scale", {3}},
                                {"params/bn/bias", {3}},
                                {"params/dense/kernel", {3, 2}},
                                {"params/dense/bias", {2}},
                                {"batch_stats/bn/mean", {3}},
                                {"batch_stats/bn/var", {3}}});
  file.metadata = Metadata{{"format", "flax"}};
  const LoadReport report = load(model, file, {.unused = OnUnused::error});
  // numpy: arange(1, 13).reshape(1, 2, 2, 3).transpose(3, 2, 0, 1).ravel()
  EXPECT_EQ(floats(model.conv.weight), (std::vector<float>{1, 7, 4, 10, 2, 8, 5, 11, 3, 9, 6, 12}));
  EXPECT_EQ(floats(model.bn.running_var), floats(file.tensor("batch_stats/bn/var")));
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("flax")));
}

TEST(Adapter, KerasNamesAndGates) {
  struct Model {
    nn::BatchNorm1d bn{2};
    nn::GRU gru{1, 1};
    nn::LSTM lstm{1, 1};
  } model;

  Checkpoint file;
  for (const char* name : {"bn/gamma:0", "bn/beta:0", "bn/moving_mean:0", "bn/moving_variance:0"})
    file.add(name, counting({2}));
  file.add("gru/gru_cell/kernel:0", Tensor::from<float>({1, 2, 3}, {1, 3}));  // update, reset, new
  file.add("gru/gru_cell/recurrent_kernel:0", Tensor::from<float>({4, 5, 6}, {1, 3}));
  file.add("gru/gru_cell/bias:0", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
  file.add("lstm/lstm_cell/kernel:0", counting({1, 4}));
  file.add("lstm/lstm_cell/recurrent_kernel:0", counting({1, 4}));
  file.add("lstm/lstm_cell/bias:0", counting({4}, 1));
  load(model, file, {.adapter = Adapter::keras, .unused = OnUnused::error});
  EXPECT_EQ(floats(model.gru.cells[0].weight_ih), (std::vector<float>{2, 1, 3}));
  EXPECT_EQ(floats(model.gru.cells[0].bias_ih), (std::vector<float>{2, 1, 3}));
  EXPECT_EQ(floats(model.gru.cells[0].bias_hh), (std::vector<float>{5, 4, 6}));
  EXPECT_EQ(floats(model.lstm.cells[0].bias_ih), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats(model.lstm.cells[0].bias_hh), (std::vector<float>{0, 0, 0, 0}));
}

TEST(Adapter, BurnGates) {
  struct Model {
    nn::LSTM lstm{1, 1};
  } model;

  Checkpoint file;
  float value = 0;
  for (const std::string gate : {"input_gate", "forget_gate", "output_gate", "cell_gate"}) {
    for (const std::string part : {"input_transform", "hidden_transform"}) {
      file.add("lstm." + gate + "." + part + ".weight", Tensor::from<float>({value}, {1, 1}));
      file.add("lstm." + gate + "." + part + ".bias", Tensor::from<float>({value += 1}, {1}));
    }
  }
  file.format = formats::bpk;
  load(model, file, {.unused = OnUnused::error});
  EXPECT_EQ(floats(model.lstm.cells[0].weight_ih),
            (std::vector<float>{0, 2, 6, 4}));  // input, forget, cell, output
  EXPECT_EQ(floats(model.lstm.cells[0].bias_hh), (std::vector<float>{2, 4, 8, 6}));
}

TEST(Adapter, SavingWithoutDataSaysWhichTensor) {
  struct Model {
    nn::Linear fc{2, 2};
  } model;

  try {
    static_cast<void>(to_checkpoint(model));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"fc.weight\": has no data"));
  }
}

}  // namespace
}  // namespace ballast
