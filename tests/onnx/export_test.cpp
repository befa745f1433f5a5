// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "ballast/load_file.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/onnx.h"
#include "ballast/ops.h"
#include "ballast/safetensors.h"
#include "ballast/verify.h"
#include "base/scratch.h"
#include "onnx/python.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;
using onnx_tests::look;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Net {
  nn::Conv2d conv{1, 4, 3, {.bias = false}};
  nn::BatchNorm2d norm{4};
  nn::Linear fc{4 * 6 * 6, 3};

  Tensor forward(const Tensor& x) const {
    return fc.forward(flatten(nn::conv_norm(conv, norm, x, Activation::Kind::relu)));
  }
};

Net net() {
  Net made;
  init(made, 3);
  made.norm.running_mean = Tensor::from({0.1F, -0.2F, 0.3F, 0.0F}, {4});
  made.norm.running_var = Tensor::from({1.0F, 2.0F, 0.5F, 1.5F}, {4});
  return made;
}

const std::vector<InputSpec> kImage = {{"image", {"batch", 1, 8, 8}}};

struct Plain {
  BALLAST_FIELDS();
};

class Onnx : public Scratch {
 protected:
  Error error_with(const onnx::Options& options) const {
    return error_of([&] { onnx::save(net(), path("net.onnx"), options); });
  }
};

TEST_F(Onnx, KeepsPyTorchsNamesAndLayouts) {
  const Net model = net();
  onnx::save(model, path("net.onnx"), {.inputs = kImage, .outputs = {"logits"}});
  EXPECT_THAT(
      look(path("net.onnx")),
      AllOf(HasSubstr("ir 8 opset 17 producer ballast"), HasSubstr("input image FLOAT [batch, 1, 8, 8]"),
            HasSubstr("output logits FLOAT [batch, 3]"), HasSubstr("weight conv.weight FLOAT [4, 1, 3, 3]"),
            HasSubstr("weight fc.weight FLOAT [3, 144]"), HasSubstr("weight norm.running_var FLOAT [4]"),
            HasSubstr("node Conv"), HasSubstr("node BatchNormalization"), HasSubstr("node Gemm"),
            Not(HasSubstr("num_batches_tracked"))));
}

TEST_F(Onnx, AModelLoadsTheWeightsItWroteAndComputesTheSame) {
  const Net source = net();
  const Tensor x = arange(0, 2 * 64).reshape({2, 1, 8, 8}).to(DType::f32) * 0.01;
  const Tensor expected = source.forward(x);
  for (const auto external : {onnx::External::when_needed, onnx::External::always}) {
    onnx::save(source, path("net.onnx"), {.inputs = kImage, .external_data = external, .overwrite = true});
    Net loaded;
    load(loaded, path("net.onnx"));
    EXPECT_TRUE(allclose(loaded.fc.weight, source.fc.weight, 0, 0));
    EXPECT_TRUE(allclose(loaded.conv.weight, source.conv.weight, 0, 0));
    // Weights that lie otherwise are summed in another order.
    EXPECT_TRUE(allclose(loaded.forward(x), expected, 2e-6, 2e-6));
  }
}

TEST_F(Onnx, WritesTheIrVersionOfTheOpset) {
  for (const auto& [opset, expected] : std::map<int, std::string>{
           {11, "ir 6 opset 11"}, {12, "ir 7 opset 12"}, {14, "ir 7 opset 14"}, {15, "ir 8 opset 15"}}) {
    onnx::save(net(), path("net.onnx"), {.inputs = kImage, .opset = opset, .overwrite = true});
    EXPECT_THAT(look(path("net.onnx")), HasSubstr(expected));
  }
}

TEST_F(Onnx, FoldsBatchNormsOnRequest) {
  const auto report = onnx::save(net(), path("net.onnx"), {.inputs = kImage, .fold_batch_norm = true});
  EXPECT_THAT(look(path("net.onnx")),
              AllOf(Not(HasSubstr("BatchNormalization")), HasSubstr("weight conv.weight FLOAT [4, 1, 3, 3]"),
                    HasSubstr("weight conv.bias FLOAT [4]"), Not(HasSubstr("norm."))));
  EXPECT_EQ(report.nodes, 4U);  // Conv, Relu, Reshape, Gemm
}

TEST_F(Onnx, DoesNotFoldANormWhoseInputIsUsedElsewhere) {
  struct Twice {
    nn::Conv2d conv{1, 2, 1};
    nn::BatchNorm2d norm{2};
    Tensor forward(const Tensor& x) const {
      const Tensor y = conv.forward(x);
      return norm.forward(y) + y;
    }
  } model;
  init(model);
  onnx::save(model, path("twice.onnx"), {.inputs = {{"x", {1, 1, 4, 4}}}, .fold_batch_norm = true});
  EXPECT_THAT(look(path("twice.onnx")), HasSubstr("BatchNormalization"));
}

TEST_F(Onnx, StoresHalfPrecisionWeights) {
  onnx::save(net(), path("net.onnx"), {.inputs = kImage, .dtype = Precision::half});
  EXPECT_THAT(
      look(path("net.onnx")),
      AllOf(HasSubstr("weight fc.weight FLOAT16 [3, 144]"), HasSubstr("weight norm.running_var FLOAT [4]"),
            HasSubstr("node Cast"), HasSubstr("output output FLOAT [batch, 3]")));
}

TEST_F(Onnx, CastsHalfPrecisionWeightsAndEndsAlone) {
  struct Half {
    nn::Linear a{4, 4};
    nn::Linear b{4, 4};
    Tensor forward(const Tensor& x) const {
      const Tensor y = relu(a.forward(x)).reshape({2, 2, 2}).permute({0, 2, 1});
      return gelu(b.forward(y.reshape({2, 4})));
    }
  } model;
  init(model);
  for_each_tensor(model, [](std::string_view, Tensor& tensor, LayerKind) { tensor = tensor.to(DType::f16); });
  onnx::save(model, path("half.onnx"), {.inputs = {{"x", {2, 4}, DType::f16}}});
  const std::string seen = look(path("half.onnx"));
  std::size_t casts = 0;
  for (std::size_t at = seen.find("node Cast"); at != std::string::npos; at = seen.find("node Cast", at + 1))
    ++casts;
  EXPECT_EQ(casts, 4U + 2U) << seen;  // parameters, the input and the result
}

TEST_F(Onnx, ComputesConstantsOnceUnlessToldNotTo) {
  struct Scaled {
    Tensor scale{DType::f32, {4}};
    Tensor forward(const Tensor& x) const { return x * exp(scale); }
  } model;
  model.scale = Tensor::from({0.0F, 1.0F, 2.0F, 3.0F}, {4});
  const std::vector<InputSpec> inputs = {{"x", {2, 4}}};
  onnx::save(model, path("folded.onnx"), {.inputs = inputs});
  EXPECT_THAT(look(path("folded.onnx")), Not(HasSubstr("node Exp")));
  onnx::save(model, path("kept.onnx"), {.inputs = inputs, .fold_constants = false});
  EXPECT_THAT(look(path("kept.onnx")), AllOf(HasSubstr("node Exp"), HasSubstr("weight scale FLOAT [4]")));
}

TEST_F(Onnx, WritesDocumentationMetadataAndTheHashOfTheSource) {
  std::ofstream(path("weights.pt")) << "abc";
  onnx::save(
      net(), path("net.onnx"),
      {.inputs = kImage, .doc = "digits", .metadata = {{"licence", "CC0"}}, .source = path("weights.pt")});
  EXPECT_THAT(
      look(path("net.onnx")),
      AllOf(
          HasSubstr("doc digits"), HasSubstr("meta licence=CC0"), HasSubstr("meta source=weights.pt"),
          HasSubstr("meta source_sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")));
}

TEST_F(Onnx, PutsWeightsIntoAFileBesideTheModel) {
  const auto report =
      onnx::save(net(), path("net.onnx"), {.inputs = kImage, .external_data = onnx::External::always});
  EXPECT_EQ(report.external_file, "net.onnx.data");
  EXPECT_EQ(report.external_bytes, fs::file_size(path("net.onnx.data")));
  EXPECT_THAT(look(path("net.onnx")), HasSubstr("weight fc.weight FLOAT [3, 144] in net.onnx.data"));
}

TEST_F(Onnx, PointsIntoASafetensorsFileWithoutCopying) {
  const Net model = net();
  fs::create_directories(path("weights"));
  safetensors::save(to_checkpoint(model), path("weights/net.safetensors"));
  const auto report =
      onnx::save(model, path("net.onnx"), {.inputs = kImage, .weights = path("weights/net.safetensors")});
  EXPECT_LT(report.bytes, 4000U);
  EXPECT_THAT(look(path("net.onnx")),
              AllOf(HasSubstr("weight fc.weight FLOAT [3, 144] in weights/net.safetensors"),
                    HasSubstr("equal conv.weight"), HasSubstr("equal fc.weight")));
}

TEST_F(Onnx, SaysTheChecksumOfTheWeightsSoThatVerifyNoticesAnEdit) {
  const Net model = net();
  safetensors::save(to_checkpoint(model), path("net.safetensors"));
  onnx::save(model, path("net.onnx"), {.inputs = kImage, .weights = path("net.safetensors")});
  EXPECT_THAT(look(path("net.onnx")), AllOf(HasSubstr("checksum fc.weight right"), Not(HasSubstr("wrong"))));
  const auto faults = [&] {
    try {
      const VerifyReport report = verify(path("net.onnx"));
      return std::count_if(report.findings.begin(), report.findings.end(),
                           [](const VerifyFinding& one) { return one.kind == Fault::checksum; });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::bad_crc);
      return std::ptrdiff_t{1};
    }
  };
  EXPECT_EQ(faults(), 0);
  std::fstream file(path("net.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x7f');
  file.close();
  EXPECT_EQ(faults(), 1);
}

TEST_F(Onnx, RefusesASafetensorsFileThatHoldsOtherWeights) {
  const Net model = net();
  const auto code = [&](const std::string& file) {
    return error_of([&] { onnx::save(model, path("net.onnx"), {.inputs = kImage, .weights = file}); }).code();
  };
  Net other = net();
  other.fc.bias = ones({3});
  safetensors::save(to_checkpoint(other), path("other.safetensors"));
  EXPECT_EQ(code(path("other.safetensors")), Errc::index_mismatch);
  safetensors::save(to_checkpoint(model, Adapter::pytorch, Precision::half), path("half.safetensors"));
  EXPECT_EQ(code(path("half.safetensors")), Errc::shape_mismatch);
  Checkpoint stranger;
  stranger.add("stranger", ones({1}));
  safetensors::save(stranger, path("stranger.safetensors"));
  EXPECT_EQ(code(path("stranger.safetensors")), Errc::not_found);
  EXPECT_FALSE(fs::exists(path("net.onnx")));
  fs::create_directories(path("below"));
  safetensors::save(to_checkpoint(model), path("outside.safetensors"));
  const auto refused = error_of([&] {
    onnx::save(model, path("below/net.onnx"), {.inputs = kImage, .weights = path("outside.safetensors")});
  });
  EXPECT_EQ(refused.code(), Errc::path_escape);
  EXPECT_FALSE(fs::exists(path("below/net.onnx")));
}

TEST_F(Onnx, KeepsTiedWeightsOnce) {
  struct Tied {
    nn::Embedding words{10, 4};
    nn::Linear head{4, 10, {.bias = false}};
    Tensor forward(const Tensor& x) const { return head.forward(words.forward(x)); }
  } model;
  init(model);
  model.head.weight = model.words.weight.t();
  onnx::save(model, path("tied.onnx"), {.inputs = {{"x", {2, 3}, DType::i64}}});
  EXPECT_THAT(look(path("tied.onnx")),
              AllOf(HasSubstr("weight words.weight"), Not(HasSubstr("weight head.weight"))));
}

TEST_F(Onnx, NamesEveryOperationThatCannotBeExportedAtOnce) {
  struct Odd {
    nn::LSTM lstm{4, 3, {.proj_size = 2}};
    Tensor forward(const Tensor& x) const {
      Generator generator(1);
      return lstm.forward(x).output + rand({1}, generator) + one_hot(max(x).to(DType::i64)).to(DType::f32);
    }
  } model;
  init(model);
  const Error error = error_of([&] { onnx::save(model, path("odd.onnx"), {.inputs = {{"x", {5, 1, 4}}}}); });
  EXPECT_EQ(error.code(), Errc::not_exportable);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("3 of"), HasSubstr("lstm in lstm (LSTM): ONNX's LSTM has no projection"),
                    HasSubstr("rand: makes other numbers at every call"), HasSubstr("one_hot: ")));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Onnx, SaysOnceWhatManyOperationsLack) {
  struct Deep {
    std::vector<nn::Linear> layers;
    Tensor forward(const Tensor& x) const {
      Tensor y = x;
      for (const nn::Linear& layer : layers) y = relu(layer.forward(y));
      return y;
    }
  } model;
  for (int i = 0; i < 30; ++i) model.layers.emplace_back(4, 4);
  init(model);
  const Error error = error_of([&] {
    onnx::save(model, path("deep.onnx"), {.inputs = {{"x", {2, 4}, DType::bf16}}, .opset = 11});
  });
  EXPECT_EQ(error.code(), Errc::not_exportable);
  const std::string text = error.what();
  EXPECT_THAT(text, AllOf(HasSubstr("60 of 60"), HasSubstr("BF16 needs opset 13 (and 59 other operations)")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

struct Attending {
  nn::MultiheadAttention attention{8, 2, {.batch_first = true}};
  nn::Linear fc{8, 3};
  Tensor forward(const Tensor& x) const { return fc.forward(relu(attention.forward(x) + x)); }
};

struct Whole {
  std::vector<Attending> blocks = std::vector<Attending>(1);
  Tensor forward(const Tensor& x) const { return softmax(blocks[0].forward(x), -1); }
};

TEST_F(Onnx, HasNoInitializerThatNoNodeTakes) {
  for (const bool folded : {true, false}) {
    Whole model;
    init(model);
    onnx::save(model, path("whole.onnx"),
               {.inputs = {{"x", {"batch", "seq", 8}}}, .fold_constants = folded, .overwrite = true});
    EXPECT_THAT(look(path("whole.onnx")), Not(HasSubstr("unused")));
  }
}

TEST_F(Onnx, NamesNodesByTheirPlaceFunctionalOnesToo) {
  Whole model;
  init(model);
  onnx::save(model, path("whole.onnx"), {.inputs = {{"x", {"batch", "seq", 8}}}});
  EXPECT_THAT(look(path("whole.onnx")),
              AllOf(HasSubstr("name blocks.0.fc/MatMul"), HasSubstr("name blocks.0/Relu"),
                    HasSubstr("name blocks.0/Add"), HasSubstr("name Softmax")));
}

TEST_F(Onnx, DescribesTheValuesBetweenInputsAndOutputs) {
  onnx::save(net(), path("net.onnx"), {.inputs = kImage});
  EXPECT_THAT(look(path("net.onnx")),
              AllOf(HasSubstr("FLOAT [batch, 4, 6, 6]"), HasSubstr("FLOAT [batch, 144]"),
                    HasSubstr("value conv/Conv_output_0")));
}

TEST_F(Onnx, RefusesOptionsThatMakeNoSense) {
  EXPECT_EQ(error_with({.inputs = kImage, .opset = 10}).code(), Errc::unsupported);
  EXPECT_EQ(error_with({.inputs = kImage, .opset = onnx::newest_opset() + 1}).code(), Errc::unsupported);
  EXPECT_EQ(error_with({.inputs = {}}).code(), Errc::invalid_argument);
  EXPECT_EQ(error_with({.inputs = kImage, .outputs = {"image"}}).code(), Errc::duplicate_key);
  EXPECT_EQ(error_with({.inputs = kImage, .outputs = {"fc.weight"}}).code(), Errc::duplicate_key);
  EXPECT_EQ(error_with({.inputs = kImage, .outputs = {""}}).code(), Errc::bad_name);
  EXPECT_EQ(error_with({.inputs = kImage, .outputs = {"a", "b"}}).code(), Errc::invalid_argument);
  EXPECT_EQ(error_with({.inputs = {{"image", {2, 1, 8, 8, 8}}}}).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_with({.inputs = {{"image", {"batch", 1, "height", 8}}}}).code(), Errc::baked_dimension);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Onnx, SaysBeforeTheWorkThatTheFileCannotBeWritten) {
  bool called = false;
  const Error error = error_of([&] {
    onnx::save(Plain{}, path("nowhere/net.onnx"), {.inputs = kImage}, [&](std::span<const Tensor> in) {
      called = true;
      return std::vector<Tensor>{in[0]};
    });
  });
  EXPECT_EQ(error.code(), Errc::file_not_found);
  EXPECT_FALSE(called);
}

TEST_F(Onnx, DoesNotOverwriteUnasked) {
  onnx::save(net(), path("net.onnx"), {.inputs = kImage});
  EXPECT_EQ(error_with({.inputs = kImage}).code(), Errc::already_exists);
}

TEST_F(Onnx, GivesEveryResultItsNameEvenWhenTheyAreOne) {
  onnx::save(Plain{}, path("same.onnx"), {.inputs = {{"x", {"n", 3}}}, .outputs = {"a", "b", "c"}},
             [](std::span<const Tensor> in) {
               const Tensor y = relu(in[0]);
               return std::vector<Tensor>{y, y, in[0]};
             });
  for (const char* line : {"output a FLOAT [n, 3]", "output b FLOAT [n, 3]", "output c FLOAT [n, 3]"})
    EXPECT_THAT(look(path("same.onnx")), HasSubstr(line));
}

}  // namespace
}  // namespace ballast
