// SPDX-License-Identifier: Apache-2.0
#include "ballast/convert.h"

#include <gmock/gmock.h>

#include <set>

#include "ballast/config.h"
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "ballast/record.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ConvertTest : public Scratch {
 protected:
  ConvertTest() {
    Checkpoint in;
    in.add("fc.weight", counting({3, 4}, 0.1F));
    in.add("bn.running_mean", counting({4}, 0.1F));
    in.add("bn.running_var", counting({4}, 0.1F));
    in.add("ids", Tensor::from<std::int64_t>({1, 2}, {2}));
    save(in, path("in.safetensors"));
  }
};

// safetensors' save_model() notes the names it leaves out; PyTorch's load_state_dict() wants all of them.
TEST_F(ConvertTest, TiedNamesAreThereAgainInPyTorchFiles) {
  Checkpoint in;
  in.add("embedding.weight", counting({3, 4}, 0.1F));
  in.metadata = Metadata{{"head.weight", "embedding.weight"}};
  save(in, path("tied.safetensors"));
  convert(path("tied.safetensors"), path("tied.pt"));
  const Checkpoint out = open(path("tied.pt"));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_TRUE(out.tensor("head.weight").same_view(out.tensor("embedding.weight")));
}

TEST_F(ConvertTest, CastsAndSparesStatistics) {
  const Converted done = convert(path("in.safetensors"), path("out.safetensors"), {.dtype = Precision::half});
  EXPECT_EQ(done.cast, 1U);
  EXPECT_EQ(done.count->rounded, 12U);  // no k + 0.1F is a half
  const Checkpoint out = open(path("out.safetensors"));
  EXPECT_EQ(out.at("fc.weight").dtype, DType::f16);
  EXPECT_EQ(out.at("bn.running_var").dtype, DType::f32);
  EXPECT_EQ(out.at("ids").dtype, DType::i64);
  convert(path("in.safetensors"), path("all.safetensors"), {.dtype = DType::bf16, .keep_statistics = false});
  EXPECT_EQ(open(path("all.safetensors")).at("bn.running_var").dtype, DType::bf16);
  convert(path("in.safetensors"), path("wide.safetensors"), {.dtype = Precision::f64});
  EXPECT_EQ(open(path("wide.safetensors")).at("bn.running_var").dtype, DType::f64);
}

// Every kind of layer, norms with and without what they may have.
struct EveryLayer {
  nn::Linear linear{3, 3};
  nn::Bilinear bilinear{2, 3, 2};
  nn::Conv2d conv{2, 3, 2};
  nn::ConvTranspose1d conv_transpose{2, 3, 2};
  nn::BatchNorm2d batch{3};
  std::vector<nn::BatchNorm1d> batches = nn::repeat<nn::BatchNorm1d>(2, 4);
  nn::BatchNorm2d batch_plain{3, {.affine = false}};
  nn::BatchNorm2d batch_untracked{3, {.track_running_stats = false}};
  nn::LayerNorm layer{Shape{3}};
  nn::GroupNorm group{1, 3};
  nn::InstanceNorm2d instance{3, {.affine = true}};
  nn::InstanceNorm2d instance_tracked{3, {.track_running_stats = true}};
  nn::InstanceNorm1d instance_whole{3, {.affine = true, .track_running_stats = true}};
  nn::RMSNorm rms{3};
  nn::Embedding embedding{4, 3};
  nn::PReLU prelu{3};
  nn::LSTM lstm{2, 3};
  nn::GRU gru{2, 3};
  nn::RNN rnn{2, 3};
  nn::MultiheadAttention attention{4, 2};
  Tensor scale{DType::f32, {3}};
  Tensor weight{DType::f32, {2}};
};

// Converting beforehand and loading (option B) gives what loading with the same dtype gives (option A), and
// what saving the model with that dtype gives.
TEST_F(ConvertTest, ADtypeMeansTheSameWhenConvertingAndWhenLoading) {
  std::set<LayerKind> kinds;
  const auto dtypes_and_values = [&](const EveryLayer& net) {
    std::vector<std::tuple<std::string, DType, std::vector<float>>> all;
    for_each_tensor(net, [&](std::string_view name, const Tensor& tensor, LayerKind kind) {
      all.emplace_back(name, tensor.dtype(), floats(tensor));
      kinds.insert(kind);
    });
    return all;
  };
  EveryLayer source;
  init(source);
  for (const Precision wide : {Precision::full, Precision::f64}) {
    for (const std::string from : {"net.pt", "net.safetensors"}) {
      save(source, path(from), {.dtype = wide, .keep_statistics = false, .overwrite = true});
      EveryLayer as_file;
      load(as_file, path(from));
      for (const Precision to :
           {Precision::keep, Precision::full, Precision::half, Precision::bf16, Precision::f64}) {
        EveryLayer loaded;
        load(loaded, path(from), {.dtype = to});
        const auto expected = dtypes_and_values(loaded);
        for (const std::string out : {"out.safetensors", "out.pt", "out.record"}) {
          convert(path(from), path(out), {.dtype = to, .overwrite = true});
          EveryLayer converted;
          load(converted, path(out));
          EXPECT_EQ(expected, dtypes_and_values(converted))
              << from << out << (to.dtype() ? info(*to.dtype()).code : "keep");
        }
        save(as_file, path("saved.pt"), {.dtype = to, .overwrite = true});
        save_record(as_file, path("saved.record"), {.dtype = to, .overwrite = true});
        for (const std::string out : {"saved.pt", "saved.record"}) {
          EveryLayer saved;
          load(saved, path(out));
          EXPECT_EQ(expected, dtypes_and_values(saved))
              << from << out << (to.dtype() ? info(*to.dtype()).code : "keep");
        }
      }
    }
  }
  EXPECT_THAT(kinds, SizeIs(kLayerKindCount));
}

TEST_F(ConvertTest, ARecordSaysWhoseLayoutItHolds) {
  convert(path("in.safetensors"), path("out.record"), {.dtype = Precision::half});
  const Checkpoint record = open_record(path("out.record"), {.verify = true});
  EXPECT_EQ(record.format.name(), "record");
  EXPECT_EQ(record.metadata->at("ballast.layout"), "pytorch");
  EXPECT_EQ(record.metadata->at("ballast.precision"), "half");

  struct Model {
    nn::Linear fc{4, 3, {.bias = false}};
  } model;

  const LoadReport report = load(model, path("out.record"));
  EXPECT_THAT(report.adapted, SizeIs(1));  // a transposed view, nothing copied
  EXPECT_TRUE(model.fc.weight.storage()->source_span().has_value());
}

TEST_F(ConvertTest, WhatOnlyARecordSaysStaysInRecords) {
  convert(path("in.safetensors"), path("a.record"));
  convert(path("a.record"), path("b.safetensors"));
  const Checkpoint out = open(path("b.safetensors"));
  EXPECT_EQ(out.format.name(), "safetensors");
  EXPECT_THAT(*out.metadata,
              ElementsAre(std::pair<const std::string, std::string>("ballast.layout", "pytorch")));
}

TEST_F(ConvertTest, QuantizedFilesLoadByThemselvesAndConvertBack) {
  const Converted done = convert(path("in.safetensors"), path("q.safetensors"), {.quantize = Quantize::int8});
  ASSERT_THAT(done.quantized, SizeIs(1));
  EXPECT_EQ(open(path("q.safetensors")).at("fc.weight").dtype, DType::i8);

  struct Model {
    nn::Linear fc{4, 3, {.bias = false}};
  } model;

  load(model, path("q.safetensors"));
  EXPECT_NEAR(floats(model.fc.weight)[0], 0.1F, done.quantized[0].max_error + 1e-6);
  convert(path("q.safetensors"), path("back.safetensors"));
  EXPECT_EQ(open(path("back.safetensors")).at("fc.weight").dtype, DType::f32);
  EXPECT_EQ(open(path("back.safetensors")).size(), 4U);
  EXPECT_EQ(
      error_of([&] { convert(path("in.safetensors"), path("q.pt"), {.quantize = Quantize::int8}); }).code(),
      Errc::not_representable);
}

TEST_F(ConvertTest, AReceiptTellsBothSidesAndTheStepsBetween) {
  convert(path("in.safetensors"), path("out.pt"),
          {.rename = {{"^fc", "head"}}, .reindex = {"layers"}, .receipt = path("r.json")});
  const Receipt receipt = read_receipt(path("r.json"));
  EXPECT_EQ(receipt.input.format, "safetensors");
  EXPECT_EQ(receipt.output.format, "torch-zip");
  EXPECT_EQ(receipt.input.root, hash(open(path("in.safetensors"))).root);
  EXPECT_EQ(receipt.output.root, hash(open(path("out.pt"))).root);
  EXPECT_EQ(receipt.output.files.at(0).sha256, hash_file(path("out.pt")));
  EXPECT_EQ(receipt.steps.rename.at(0).to, "head");
  EXPECT_THAT(receipt.steps.reindex, ElementsAre("layers"));
  EXPECT_THAT(check_receipt(path("out.pt"), receipt).problems, IsEmpty());
  const ReceiptCheck input = check_receipt(path("in.safetensors"), receipt);
  EXPECT_TRUE(input.is_input);
  EXPECT_THAT(input.problems, IsEmpty());
}

TEST_F(ConvertTest, AConversionWithoutStepsKeepsTheRoot) {
  convert(path("in.safetensors"), path("out.pt"), {.receipt = path("r.json")});
  const Receipt receipt = read_receipt(path("r.json"));
  EXPECT_EQ(receipt.input.root, receipt.output.root);
}

TEST_F(ConvertTest, AReceiptDoesNotFitAnotherFile) {
  convert(path("in.safetensors"), path("out.safetensors"), {.receipt = path("r.json")});
  Checkpoint other;
  other.add("fc.weight", counting({3, 4}, 0.2F));
  other.add("more", counting({1}));
  save(other, path("out.safetensors"), {.overwrite = true});
  const auto problems = check_receipt(path("out.safetensors"), read_receipt(path("r.json"))).problems;
  EXPECT_THAT(problems, testing::Contains(HasSubstr("SHA-256")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("tensor \"fc.weight\" is not the receipt's")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("tensor \"more\" is not in the receipt")));
  EXPECT_THAT(problems, testing::Contains(HasSubstr("tensor \"ids\" of the receipt is not there")));
}

TEST_F(ConvertTest, TheInputIsNeverAnOutputOfTheSameRun) {
  const std::string before = hash_file(path("in.safetensors"));
  std::filesystem::create_symlink(path("in.safetensors"), path("link.safetensors"));
  for (const char* out : {"in.safetensors", "link.safetensors"}) {
    EXPECT_EQ(error_of([&] { convert(path("in.safetensors"), path(out), {.overwrite = true}); }).code(),
              Errc::invalid_argument);
  }
  EXPECT_EQ(error_of([&] {
              convert(path("in.safetensors"), path("o.safetensors"),
                      {.receipt = path("in.safetensors"), .overwrite = true});
            }).code(),
            Errc::invalid_argument);
  EXPECT_EQ(hash_file(path("in.safetensors")), before);
  EXPECT_FALSE(std::filesystem::exists(path("o.safetensors")));
}

TEST_F(ConvertTest, AnExistingReceiptStopsTheWorkBeforeItBegins) {
  write(path("r.json"), "precious");
  EXPECT_EQ(error_of([&] {
              convert(path("in.safetensors"), path("o.safetensors"), {.receipt = path("r.json")});
            }).code(),
            Errc::already_exists);
  EXPECT_FALSE(std::filesystem::exists(path("o.safetensors")));
}

TEST_F(ConvertTest, AReceiptOfALaterSchemaIsRefused) {
  convert(path("in.safetensors"), path("o.safetensors"), {.receipt = path("r.json")});
  std::string text = content(path("r.json"));
  text.replace(text.find("\"schema\":1"), 10, "\"schema\":2");
  write(path("r.json"), text);
  EXPECT_EQ(error_of([&] { (void)read_receipt(path("r.json")); }).code(), Errc::unsupported);
}

}  // namespace
}  // namespace ballast
