// SPDX-License-Identifier: Apache-2.0
// Burn's import cases once more (tests/model/import_test.cpp loads
// them): the loaded models give PyTorch's outputs for the inputs recorded beside the files. Files named _half
// hold F16: their outputs are those of the rounded weights; with F16 inputs too, everything is F16.
#include <gmock/gmock.h>

#include <fstream>
#include <variant>

#include "ballast/load_file.h"
#include "ballast/nn.h"
#include "ballast/safetensors.h"
#include "base/scratch.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ops_tests::error_of;
using ops_tests::Json;

const std::string kFolder = BALLAST_TEST_DATA "/fixtures/torch/";

std::string file(const std::string& name) {
  return kFolder + "files/import_" + name + ".pt";
}

const Json& recorded() {
  static const Json all = Json::parse(std::ifstream(kFolder + "expect.json"))["files"];
  return all;
}

Tensor tensor_of(const Json& numbers) {
  const std::string hex = numbers["hex"];
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  const DType dtype = numbers["dtype"] == "F32"   ? DType::f32
                      : numbers["dtype"] == "I64" ? DType::i64
                                                  : DType::boolean;
  Tensor tensor = Tensor::empty(dtype, ops_tests::dims_of(numbers["shape"]));
  EXPECT_EQ(tensor.size_bytes(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), tensor.mutable_data());
  return tensor;
}

struct Io {
  Tensor input;
  Tensor output;
};

Io io_of(const std::string& name) {
  const Json& io = recorded().at("import_" + name + ".pt").at("io");
  return {tensor_of(io["inputs"][0]), tensor_of(io["outputs"][0])};
}

// The outputs of the float, half and legacy files of a case.
template <class Model>
void expect_outputs(const std::string& name, const LoadOptions& options = {}) {
  for (const std::string variant : {"", "_half", "_legacy"}) {
    SCOPED_TRACE(name + variant);
    if (!recorded().contains("import_" + name + variant + ".pt")) continue;
    Model model;
    load(model, file(name + variant), options);
    const Io io = io_of(name + variant);
    EXPECT_LE(error_of(model.forward(io.input), io.output), 2e-6);
    if (variant == "_half" && io.input.dtype() == DType::f32) {
      const Tensor half = model.forward(io.input.to(DType::f16));
      EXPECT_EQ(half.dtype(), DType::f16);
      EXPECT_LE(error_of(half.to(DType::f32), io.output), 5e-3);
    }
  }
}

struct Norm2d {
  nn::BatchNorm2d norm1{5};

  Tensor forward(const Tensor& x) const { return norm1.forward(x); }
};

struct Table {
  Tensor buffer;

  Tensor forward(const Tensor&) const { return buffer; }
};

struct Added {
  Tensor buffer;

  Tensor forward(const Tensor& x) const { return (buffer + x).to(x.dtype()); }
};

template <class Conv>
struct Chain {
  Conv conv1{2, 2, 2};
  Conv conv2{2, 2, 2, {.bias = false}};

  Tensor forward(const Tensor& x) const { return conv2.forward(conv1.forward(x)); }
};

struct Embed {
  nn::Embedding embed{10, 3};

  Tensor forward(const Tensor& x) const { return embed.forward(x).to(DType::f32); }
};

struct Group {
  nn::GroupNorm norm1{2, 6};

  Tensor forward(const Tensor& x) const { return norm1.forward(x); }
};

struct Layer {
  nn::LayerNorm norm1{2};

  Tensor forward(const Tensor& x) const { return norm1.forward(x); }
};

struct TwoLinear {
  nn::Linear fc1{2, 3};
  nn::Linear fc2{3, 4, {.bias = false}};

  Tensor forward(const Tensor& x) const { return fc2.forward(relu(fc1.forward(x))); }
};

struct OneLinear {
  nn::Linear fc1{2, 3};

  Tensor forward(const Tensor& x) const { return fc1.forward(x); }
};

struct MultiLayer {
  nn::Conv2d conv1{3, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm1{4};
  nn::Linear fc1{256, 16};

  Tensor forward(const Tensor& x) const {
    return fc1.forward(flatten(relu(norm1.forward(conv1.forward(x)))));
  }
};

struct ConvNorm {
  nn::Conv2d conv;
  nn::BatchNorm2d norm;

  Tensor forward(const Tensor& x) const { return norm.forward(conv.forward(x)); }
};

struct ComplexNested {
  std::vector<ConvNorm> conv_blocks{{{2, 4, {3, 2}}, {4}}, {{4, 6, {3, 2}}, {6}}};
  nn::BatchNorm2d norm1{6};
  nn::Linear fc1{120, 12};
  nn::Linear fc2{12, 10};

  Tensor forward(const Tensor& x) const {
    const Tensor features = norm1.forward(conv_blocks[1].forward(conv_blocks[0].forward(x)));
    return log_softmax(fc2.forward(relu(fc1.forward(flatten(features)))));
  }
};

struct Dws {
  nn::Conv2d dconv{2, 2, 3, {.groups = 2}};
  nn::Conv2d pconv{2, 2, 1};

  Tensor forward(const Tensor& x) const { return pconv.forward(dconv.forward(x)); }
};

struct Plain {
  Flat<nn::Conv2d> conv{{2, 2, 3}};

  Tensor forward(const Tensor& x) const { return conv->forward(x); }
};

struct EnumModule {
  std::variant<Dws, Plain> conv;

  Tensor forward(const Tensor& x) const {
    return std::visit([&](const auto& held) { return held.forward(x); }, conv);
  }
};

struct Gapped {
  std::vector<nn::Conv2d> fc = nn::repeat<nn::Conv2d>(5, 2, 2, 3, nn::ConvOptions<2>{.padding = 1});

  Tensor forward(Tensor x) const {
    for (const nn::Conv2d& conv : fc) x = conv.forward(x, Activation::Kind::relu);
    return x;
  }
};

struct RemapChained {
  struct Blocks {
    std::vector<ConvNorm> blocks{{{6, 6, 1, {.bias = false}}, {6}}, {{6, 6, 1, {.bias = false}}, {6}}};
  };

  nn::Conv2d conv{3, 6, 3, {.bias = false}};
  nn::BatchNorm2d bn{6};
  Blocks layer;

  Tensor forward(const Tensor& x) const {
    return layer.blocks[1].forward(layer.blocks[0].forward(bn.forward(conv.forward(x))));
  }
};

struct OneConv {
  nn::Conv2d conv1{2, 2, 2};

  Tensor forward(const Tensor& x) const { return conv1.forward(x); }
};

TEST(ImportForward, BatchNorm2d) {
  expect_outputs<Norm2d>("batch_norm2d");
}

TEST(ImportForward, Boolean) {
  expect_outputs<Table>("boolean");
}

TEST(ImportForward, Buffer) {
  expect_outputs<Added>("buffer");
}

TEST(ImportForward, Integer) {
  expect_outputs<Table>("integer");
}

TEST(ImportForward, ComplexNested) {
  expect_outputs<ComplexNested>("complex_nested");
}

TEST(ImportForward, Conv1d) {
  expect_outputs<Chain<nn::Conv1d>>("conv1d");
}

TEST(ImportForward, Conv2d) {
  expect_outputs<Chain<nn::Conv2d>>("conv2d");
}

TEST(ImportForward, ConvTranspose1d) {
  expect_outputs<Chain<nn::ConvTranspose1d>>("conv_transpose1d");
}

TEST(ImportForward, ConvTranspose2d) {
  expect_outputs<Chain<nn::ConvTranspose2d>>("conv_transpose2d");
}

TEST(ImportForward, Embedding) {
  expect_outputs<Embed>("embedding");
}

TEST(ImportForward, EnumModule) {
  expect_outputs<EnumModule>("enum_depthwise_false");
  expect_outputs<EnumModule>("enum_depthwise_true");
}

TEST(ImportForward, GroupNorm) {
  expect_outputs<Group>("group_norm");
}

TEST(ImportForward, LayerNorm) {
  expect_outputs<Layer>("layer_norm");
}

TEST(ImportForward, KeyRemap) {
  expect_outputs<Chain<nn::Conv2d>>("key_remap", {.rename = {{R"(conv\.(.*))", "$1"}}});
}

TEST(ImportForward, KeyRemapChained) {
  expect_outputs<RemapChained>("key_remap_chained",
                               {.rename = {{R"((.+)\.block\.0\.(.+))", "$1.conv.$2"},
                                           {R"((.+)\.block\.1\.(.+))", "$1.norm.$2"},
                                           {R"(layer\.([0-9])\.(.+))", "layer.blocks.$1.$2"}}});
}

TEST(ImportForward, Linear) {
  expect_outputs<TwoLinear>("linear");
  expect_outputs<OneLinear>("linear_with_bias");
}

TEST(ImportForward, MissingModuleFieldAndTopLevelKey) {
  expect_outputs<OneConv>("missing_module_field");
  expect_outputs<OneConv>("top_level_key", {.root = "my_state_dict"});
}

TEST(ImportForward, NonContiguousIndexes) {
  expect_outputs<Gapped>("non_contiguous_indexes");
}

TEST(ImportForward, MultiLayer) {
  expect_outputs<MultiLayer>("multi_layer");
}

class ImportForwardFiles : public Scratch {};

TEST_F(ImportForwardFiles, MultiLayerAsSafetensors) {
  MultiLayer from_torch;
  load(from_torch, file("multi_layer"));
  safetensors::save(to_checkpoint(from_torch), path("multi_layer.safetensors"));
  MultiLayer again;
  load(again, path("multi_layer.safetensors"));
  const Io io = io_of("multi_layer");
  EXPECT_LE(ops_tests::error_of(again.forward(io.input), io.output), 2e-6);
}

// A partial model's sum.
TEST(ImportForward, PartialModelLoading) {
  struct Partial {
    ConvNorm conv1{{2, 4, {3, 2}}, {4}};
  } model;
  load(model, file("complex_nested"), {.rename = {{R"(conv_blocks\.0\.(.*))", "conv1.$1"}}});
  const Tensor out = model.conv1.forward(ones({1, 2, 9, 6}) - 0.5);
  EXPECT_NEAR(sum(out).item(), 4.871538, 2e-5);
}

// What "half" meant when Burn had it: a float file loaded as F16, computed with.
TEST(ImportForward, HalfPrecisionOfAFloatFile) {
  TwoLinear model;
  load(model, file("linear"), {.dtype = Precision::half});
  const Io io = io_of("linear_half");
  EXPECT_EQ(model.fc1.weight.dtype(), DType::f16);
  EXPECT_LE(error_of(model.forward(io.input), io.output), 2e-6);
}

}  // namespace
}  // namespace ballast
