// SPDX-License-Identifier: Apache-2.0
// The cases of Burn's stores (README.md): Safetensors and PyTorch files made by torch
// (fixtures/import), and every layer there is. README.md has the list.
#include <limits>

#include "ballast/convert.h"
#include "model/import_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string output(const std::string& name) {
  return std::string(BALLAST_TEST_OUTPUT "/import_store_") + name;
}

struct MultiLayer {
  nn::Conv2d conv1{3, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm1{4};
  nn::Linear fc1{256, 16};
};

TEST(ImportStore, MultiLayerModel) {  // multi_layer_model, multi_layer_verify
  MultiLayer model;
  const LoadReport report =
      load(model, kImportFiles + "multi_layer.safetensors", {.unused = OnUnused::error});
  EXPECT_THAT(report.applied, SizeIs(9));
  EXPECT_THAT(targets(report.applied), Contains("norm1.gamma"));
  EXPECT_EQ(digests_of(model), import_digests("multi_layer.safetensors"));
  EXPECT_EQ(import_digests("multi_layer.safetensors"), torch_digests("import_multi_layer.pt"));
}

TEST(ImportStore, TensorNames) {  // verify_tensor_names_from_pytorch
  std::vector<std::string> names;
  for (const Entry& entry : open(kImportFiles + "multi_layer.safetensors")) names.emplace_back(entry.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("conv1.weight", "conv1.bias", "norm1.weight",
                                                     "norm1.bias", "norm1.running_mean", "norm1.running_var",
                                                     "norm1.num_batches_tracked", "fc1.weight", "fc1.bias"));
}

TEST(ImportStore, SavedAndLoadedAgain) {  // safetensors_round_trip_with_pytorch_model
  MultiLayer model;
  load(model, kImportFiles + "multi_layer.safetensors");
  for (const Adapter adapter : {Adapter::pytorch, Adapter::none}) {
    const std::string path = output(std::string(name(adapter)) + ".safetensors");
    save(model, path, {.adapter = adapter, .overwrite = true});
    MultiLayer again;
    EXPECT_TRUE(load(again, path, {.unused = OnUnused::error}).complete());
    EXPECT_EQ(digests_of(again), import_digests("multi_layer.safetensors"));
  }
}

TEST(ImportStore, WithoutAdapterWhatDiffersIsListedAndTheRestLoaded) {  // partial_load_from_pytorch_model
  MultiLayer model;
  const LoadReport report =
      load(model, kImportFiles + "multi_layer.safetensors",
           {.adapter = Adapter::none, .missing = OnMissing::keep, .mismatched = OnMismatch::keep});
  EXPECT_THAT(targets(report.missing), ElementsAre("norm1.gamma", "norm1.beta"));
  ASSERT_THAT(report.mismatched, SizeIs(1));
  EXPECT_EQ(report.mismatched[0].target, "fc1.weight");
  EXPECT_TRUE(model.conv1.weight.has_data());
  EXPECT_FALSE(model.fc1.weight.has_data());
}

struct Half {
  nn::Linear layer1;
  nn::Linear layer2;
  nn::LayerNorm norm;
};

struct Autoencoder {
  Half encoder{nn::Linear{4, 6}, nn::Linear{6, 3}, nn::LayerNorm{3}};
  Half decoder{nn::Linear{3, 6}, nn::Linear{6, 4}, nn::LayerNorm{4}};
  nn::Linear head{4, 2};
};

class Store : public ::testing::TestWithParam<std::string> {
 protected:
  std::string file() const { return kImportFiles + "autoencoder." + GetParam(); }

  Digests expected() const { return import_digests("autoencoder." + GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Formats, Store, ::testing::Values("safetensors", "pt"),
                         [](const auto& each) { return each.param; });

TEST_P(Store, AllApplied) {  // integration: 14 applied, 0 unused
  Autoencoder model;
  const LoadReport report = load(model, file());
  EXPECT_THAT(report.applied, SizeIs(14));
  EXPECT_THAT(report.unused, IsEmpty());
  EXPECT_EQ(digests_of(model), expected());
}

TEST_P(Store, Filters) {  // encoder only, several patterns, exact paths, biases left out, combined, all
  const auto applied = [&](std::vector<std::string> include, std::vector<std::string> exclude = {}) {
    Autoencoder model;
    const LoadReport report =
        load(model, file(), {.include = std::move(include), .exclude = std::move(exclude)});
    EXPECT_TRUE(report.complete());
    EXPECT_EQ(report.applied.size() + report.skipped.size(), 14U);
    return report.applied.size();
  };
  EXPECT_EQ(applied({R"(^encoder\.)"}), 6U);
  EXPECT_EQ(applied({R"(^encoder\.)", R"(^head\.)"}), 8U);
  EXPECT_EQ(applied({R"(^encoder\.layer1\.weight$)", R"(^head\.bias$)", R"(^decoder\.norm\.bias$)"}), 3U);
  EXPECT_EQ(applied({}, {R"(\.bias$)"}), 7U);
  EXPECT_EQ(applied({R"(^encoder\.)"}, {R"(\.bias$)", "norm"}), 2U);
  EXPECT_EQ(applied({".*"}), 14U);
}

TEST_P(Store, AFilterThatMatchesNothingIsAnError) {
  Autoencoder model;
  try {
    load(model, file(), {.include = {"^encodr"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_THAT(error.what(), HasSubstr("\"^encodr\""));
  }
  const LoadReport report = load(model, file(), {.include = {"^encoder", "^haed"}, .exclude = {"_bias$"}});
  EXPECT_THAT(report.notes, Contains(HasSubstr("\"^haed\" matched no key")));
  EXPECT_THAT(report.notes, Contains(HasSubstr("\"_bias$\" matched no key")));
}

TEST_P(Store, RemappedNames) {
  struct Model {
    Half enc{nn::Linear{4, 6}, nn::Linear{6, 3}, nn::LayerNorm{3}};
  } model;

  const LoadReport report =
      load(model, file(), {.rename = {{R"(^encoder\.)", "enc."}}, .include = {R"(^enc\.)"}});
  EXPECT_THAT(report.renamed, SizeIs(6));
  EXPECT_EQ(report.applied[0].source, "encoder.layer1.weight");
  EXPECT_EQ(digest(model.enc.layer2.bias), expected().at("encoder.layer2.bias"));
}

TEST_P(Store, StrictLoadNamesWhatIsMissing) {  // missing fc2.bias -> Err
  struct Model {
    Half encoder{nn::Linear{4, 6}, nn::Linear{6, 3}, nn::LayerNorm{3}};
    nn::Linear extra{2, 2};
  } model;

  EXPECT_THAT(targets(failed_load(model, open(file())).missing), ElementsAre("extra.weight", "extra.bias"));
  EXPECT_FALSE(model.encoder.layer1.weight.has_data());
}

TEST_P(Store, LinearOfAnotherSize) {  // error_handling: Linear(2,2) into Linear(3,3)
  struct Model {
    nn::Linear head{3, 3};
  } model;

  EXPECT_THAT(failed_load(model, open(file())).mismatched, SizeIs(2));
  EXPECT_FALSE(model.head.weight.has_data());
  const LoadReport report = load(model, file(), {.mismatched = OnMismatch::keep});
  EXPECT_EQ(report.mismatched[0].file_shape, (Shape{2, 4}));  // torch's [out, in]
  EXPECT_EQ(report.mismatched[0].model_shape, (Shape{3, 3}));
}

TEST_P(Store, OneTensorByNameWithoutAModel) {  // direct access
  const Checkpoint checkpoint = open(file());
  EXPECT_EQ(checkpoint.size(), 14U);
  EXPECT_EQ(digest(checkpoint.tensor("head.weight")), expected().at("head.weight"));
  EXPECT_FALSE(checkpoint.contains("head.wieght"));
  try {
    static_cast<void>(checkpoint.tensor("head.wieght"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_THAT(error.what(), HasSubstr("head.weight"));
  }
  // The names after a rename are visible, whatever a filter would keep.
  const Checkpoint renamed = rename(checkpoint, {{"^head", "tail"}}).checkpoint;
  EXPECT_TRUE(renamed.contains("tail.bias"));
}

TEST_P(Store, HalfOnlyWhereARuleSays) {  // half round trip, without_module("LayerNorm")
  Autoencoder model;
  const LoadReport report =
      load(model, file(), {.rules = {rules::Change{R"(layer\d|head)", {rules::Cast{DType::f16}}, {}}}});
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(model.encoder.layer1.weight.dtype(), DType::f16);
  EXPECT_EQ(model.encoder.norm.gamma.dtype(), DType::f32);
  Autoencoder full;
  load(full, file());
  const auto before = floats(full.head.weight);
  const auto after = floats(model.head.weight);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 0.001);
}

TEST_P(Store, MissingFilesAndOverwriting) {  // file_io
  Autoencoder model;
  EXPECT_THROW(load(model, kImportFiles + "no_such_file." + GetParam()), Error);
  load(model, file());
  const std::string path = output("overwrite." + GetParam());
  save(model, path, {.overwrite = true});
  try {
    save(model, path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::already_exists);
  }
  Autoencoder again;
  EXPECT_TRUE(load(again, path, {.unused = OnUnused::error}).complete());
  EXPECT_EQ(digests_of(again), expected());
}

TEST_P(Store, ConvertIsOpenStepsSave) {
  const std::string path = output("converted_from_" + GetParam() + ".safetensors");
  const Converted done = convert(file(), path,
                                 {.rename = {{R"(^encoder\.)", "e."}},
                                  .include = {R"(^e\.)"},
                                  .dtype = Precision::half,
                                  .overwrite = true});
  EXPECT_EQ(done.origins.size(), 6U);
  const Checkpoint written = open(path);
  EXPECT_EQ(written.size(), 6U);
  EXPECT_EQ(written.tensor("e.layer1.weight").dtype(), DType::f16);
  EXPECT_EQ(floats(written.tensor("e.layer1.bias")),
            floats(open(file()).tensor("encoder.layer1.bias").to(DType::f16)));
}

TEST(ImportStore, Metadata) {  // defaults kept, own added, cleared
  Checkpoint checkpoint = open(kImportFiles + "autoencoder.safetensors");
  EXPECT_EQ(checkpoint.metadata, (Metadata{{"format", "pt"}}));
  checkpoint.metadata->emplace("author", "somebody");
  save(checkpoint, output("metadata.safetensors"), {.overwrite = true});
  EXPECT_EQ(open(output("metadata.safetensors")).metadata,
            (Metadata{{"author", "somebody"}, {"format", "pt"}}));
  checkpoint.metadata.reset();
  save(checkpoint, output("no_metadata.safetensors"), {.overwrite = true});
  EXPECT_FALSE(open(output("no_metadata.safetensors")).metadata.has_value());
}

TEST(ImportStore, MixedDtypes) {  // mixed_datatypes: extremes of every dtype, kept to the bit
  struct Model {
    Tensor f32, f64, f16, bf16, i64, i32, i16, i8, u8, flag;
  } model;

  load(model, kImportFiles + "mixed_dtypes.safetensors", {.unused = OnUnused::error});
  EXPECT_EQ(digests_of(model), import_digests("mixed_dtypes.safetensors"));
  EXPECT_EQ(model.f32.span<float>()[0], std::numeric_limits<float>::max());
  EXPECT_EQ(model.i64.span<std::int64_t>()[1], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(model.flag.dtype(), DType::boolean);
  save(model, output("mixed.pt"), {.overwrite = true});
  Model again;
  load(again, output("mixed.pt"));
  EXPECT_EQ(digests_of(again), import_digests("mixed_dtypes.safetensors"));
}

// Every layer with PyTorch's own state dict: names, shapes, gate blocks, packed projections.
struct Layers {
  nn::Linear linear{3, 2};
  nn::Bilinear bilinear{2, 3, 4};
  nn::Conv1d conv1{2, 4, 3, {.groups = 2}};
  nn::Conv2d conv2{3, 4, {2, 5}};
  nn::Conv3d conv3{1, 2, {2, 3, 4}, {.bias = false}};
  nn::ConvTranspose1d up1{2, 4, 3};
  nn::ConvTranspose2d up2{4, 6, {2, 3}, {.groups = 2}};
  nn::ConvTranspose3d up3{1, 2, 2};
  nn::BatchNorm1d batch1{3};
  nn::BatchNorm2d batch{5};
  nn::BatchNorm3d batch3{2, {.affine = false}};
  nn::LayerNorm layer{Shape{2, 3}};
  nn::GroupNorm group{2, 6};
  nn::InstanceNorm2d instance{4, {.affine = true, .track_running_stats = true}};
  nn::Embedding embedding{6, 3};
  nn::PReLU prelu{3};
  nn::LSTM lstm{3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2}};
  nn::GRU gru{3, 4, {.num_layers = 2}};
  nn::RNN rnn{3, 4, {.bias = false}};
  nn::MultiheadAttention attention{4, 2};
  nn::MultiheadAttention wide{4, 2, {.bias = false, .add_bias_kv = true, .kdim = 3, .vdim = 5}};
  nn::TransformerEncoderLayer encoder{4, 2, {.dim_feedforward = 8}};
  nn::TransformerDecoderLayer decoder{4, 2, {.dim_feedforward = 8}};
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear> head{{4, 3}, {}, {3, 1}};
};

TEST(ImportStore, EveryLayerOfPytorch) {
  for (const std::string name : {"layers.pt", "layers.safetensors"}) {
    Layers model;
    const LoadReport report = load(model, kImportFiles + name, {.unused = OnUnused::error});
    EXPECT_TRUE(report.complete());
    EXPECT_EQ(digests_of(model), import_digests(name));
  }
}

TEST(ImportStore, WeightNormIsMultipliedOut) {
  struct Model {
    nn::Conv1d conv{2, 3, 2};
    nn::Linear fc{3, 2};
    Tensor conv_weight;  // what PyTorch computes
    Tensor fc_weight;
  } model;

  load(model, kImportFiles + "weight_norm.pt", {.unused = OnUnused::error});
  const auto near = [](const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.shape(), b.shape());
    const auto left = floats(a);
    const auto right = floats(b);
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 1e-6);
  };
  near(model.conv.weight, model.conv_weight);
  near(model.fc.weight.t(), model.fc_weight);
}

// Variants are told apart by the file; their names are in no path (skip_enum_variants).
TEST(ImportStore, VariantNamesAreNotInPaths) {
  struct BaseConv {
    Tensor weight{DType::f32, {2, 2}};
    Tensor bias{DType::f32, {2, 2}};
  };

  struct DwsConv {
    BaseConv dconv;
    BaseConv pconv;
  };

  struct Model {
    BaseConv conv1;
    std::vector<std::variant<DwsConv, BaseConv>> feature = std::vector<std::variant<DwsConv, BaseConv>>(2);
  } model;

  const LoadReport report =
      load(model, kTorchFiles + "reader_model_without_variants.pt", {.unused = OnUnused::error});
  EXPECT_THAT(report.applied, SizeIs(6));
  EXPECT_TRUE(std::holds_alternative<BaseConv>(model.feature[1]));
}

}  // namespace
}  // namespace ballast
