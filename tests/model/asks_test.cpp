// SPDX-License-Identifier: Apache-2.0
// What Burn's users asked for and what concerns loading: one test for each number of README.md's last list
// (3, 4, 20 to 31, 34 to 37), on files PyTorch made. README.md has the list.
#include <fstream>

#include "ballast/convert.h"
#include "ballast/safetensors.h"
#include "ballast/steps.h"
#include "ballast/torch.h"
#include "model/import_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string output(const std::string& name) {
  return std::string(BALLAST_TEST_OUTPUT "/asks_") + name;
}

struct TwoLinear {
  nn::Linear fc1{2, 3};
  nn::Linear fc2{3, 4, {.bias = false}};
};

TEST(Asks, N03_LoadingDoesNotDoubleTheMemory) {  // #3754, #4703
  const Checkpoint file = open(kTorchFiles + "import_linear.pt");
  TwoLinear model;
  load(model, file);
  // What the model holds is the file's own memory.
  EXPECT_EQ(model.fc1.weight.storage(), file.tensor("fc1.weight").storage());
  EXPECT_EQ(model.fc2.weight.storage(), file.tensor("fc2.weight").storage());
}

TEST(Asks, N04_NothingIsInitialisedBeforeALoad) {  // #3792
  struct Large {
    std::vector<nn::Linear> layers = nn::repeat<nn::Linear>(64, 1 << 20, 1 << 20);  // 256 TiB
  };

  const Large model;
  for_each_tensor(model,
                  [](std::string_view, const Tensor& tensor, LayerKind) { EXPECT_FALSE(tensor.has_data()); });
}

struct OwnNorm {  // a layer of the user's own takes part in the table by its kind
  static constexpr LayerKind kind = LayerKind::layer_norm;
  Tensor gamma{DType::f32, {2}};
  Tensor beta{DType::f32, {2}};
};

TEST(Asks, N20_GammaAndBetaAreFoundForEveryNorm) {  // #4036, #5023
  struct Model {
    OwnNorm norm1;
  } model;

  EXPECT_TRUE(load(model, kTorchFiles + "import_layer_norm.pt", {.unused = OnUnused::error}).complete());

  struct Rms {
    nn::RMSNorm a{2};
    nn::GroupNorm b{1, 2};
    nn::InstanceNorm2d c{2, {.affine = true}};
    nn::PReLU d;
  } rms;

  EXPECT_TRUE(load(rms,
                   checkpoint({{"a.weight", {2}},
                               {"b.weight", {2}},
                               {"b.bias", {2}},
                               {"c.weight", {2}},
                               {"c.bias", {2}},
                               {"d.weight", {1}}}),
                   {.unused = OnUnused::error})
                  .complete());
}

TEST(Asks, N21_WhatWasFoundUnderAnotherNameIsNotUnused) {  // #5483
  struct Model {
    nn::BatchNorm2d norm1{5};
  } model;

  const LoadReport report = load(model, kTorchFiles + "import_batch_norm2d.pt");
  EXPECT_THAT(report.unused, IsEmpty());
  EXPECT_THAT(sources(report.applied), ElementsAre("norm1.weight", "norm1.bias", "norm1.running_mean",
                                                   "norm1.running_var", "norm1.num_batches_tracked"));
  EXPECT_THAT(targets(report.applied), ElementsAre("norm1.gamma", "norm1.beta", "norm1.running_mean",
                                                   "norm1.running_var", "norm1.num_batches_tracked"));
}

TEST(Asks, N22_AFailureCarriesTheReportAsData) {  // #4718
  struct Model {
    nn::Linear fc1{2, 3};
    nn::Linear fc3{3, 4};
  } model;

  try {
    load(model, kTorchFiles + "import_linear.pt");
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(targets(error.report().missing), ElementsAre("fc3.weight", "fc3.bias"));
    EXPECT_THAT(sources(error.report().unused), ElementsAre("fc2.weight"));
    EXPECT_THAT(error.report().to_json(), HasSubstr(R"("missing":[{"source":"fc3.weight")"));
  }
}

TEST(Asks, N23_AnErrorIsShortAndNamesKeyShapesAndTheNearest) {  // #2663, #1390
  struct Model {
    nn::Embedding embed{11, 3};
    nn::Linear embedd{2, 2, {.bias = false}};
  } model;

  try {
    load(model, kTorchFiles + "import_embedding.pt");
    FAIL();
  } catch (const LoadError& error) {
    const std::string text = error.what();
    EXPECT_LT(text.size(), 2000U);
    EXPECT_THAT(text, HasSubstr("embed.weight: file [10, 3], model [11, 3]"));
    EXPECT_THAT(text, HasSubstr("embedd.weight"));
    EXPECT_THAT(text, Not(HasSubstr("0.1001")));  // no values
  }
}

TEST(Asks, N24_AVariantIsChosenByAllItsKeysAndShapes) {  // #1655, #726, #1431
  struct Conv {
    Tensor weight;  // a norm has a `weight` too
  };

  struct Norm {
    Flat<nn::BatchNorm2d> norm{nn::BatchNorm2d{5}};
  };

  struct Model {
    std::variant<Conv, Norm> norm1;
  } model;

  EXPECT_THAT(load(model, kTorchFiles + "import_batch_norm2d.pt").unused, IsEmpty());
  EXPECT_TRUE(std::holds_alternative<Norm>(model.norm1));
}

TEST(Asks, N25_PositionsAreCompactedOnlyWhereNeeded) {  // #1420, #4716
  struct Compact {
    std::vector<nn::Conv2d> fc = nn::repeat<nn::Conv2d>(5, 2, 2, 3);
  };

  struct Gapped {  // the model has the gaps itself
    nn::Sequential<nn::Conv2d, nn::ReLU, nn::Conv2d, nn::ReLU, nn::Conv2d, nn::ReLU, nn::Conv2d, nn::ReLU,
                   nn::Conv2d>
        fc{{2, 2, 3}, {}, {2, 2, 3}, {}, {2, 2, 3}, {}, {2, 2, 3}, {}, {2, 2, 3}};
  };

  const std::string file = kTorchFiles + "import_non_contiguous_indexes.pt";
  const Digests expected = torch_digests("import_non_contiguous_indexes.pt");
  Compact compact;
  EXPECT_THAT(load(compact, file).reindexed, SizeIs(4));
  EXPECT_EQ(digest(compact.fc[3].weight), expected.at("fc.6.weight"));
  Gapped gapped;
  EXPECT_THAT(load(gapped, file, {.unused = OnUnused::error}).reindexed, IsEmpty());
  EXPECT_EQ(digests_of(gapped), expected);
  Compact off;  // switched off for one prefix
  EXPECT_THROW(load(off, file, {.keep_positions = {R"(^fc\.)"}}), LoadError);
}

TEST(Asks, N26_GatesAndPackedProjections) {  // #4043
  nn::LSTM lstm{2, 2};
  EXPECT_TRUE(load(lstm, kTorchFiles + "module_lstm.pt", {.unused = OnUnused::error}).complete());
  EXPECT_EQ(digests_of(lstm), torch_digests("module_lstm.pt"));
  nn::GRU gru{1, 2, {.bidirectional = true}};
  EXPECT_TRUE(load(gru, kTorchFiles + "module_gru.pt", {.unused = OnUnused::error}).complete());
  EXPECT_EQ(digests_of(gru), torch_digests("module_gru.pt"));
  nn::MultiheadAttention attention{2, 1};
  EXPECT_TRUE(load(attention, kTorchFiles + "module_attention.pt", {.unused = OnUnused::error}).complete());
  EXPECT_EQ(digests_of(attention), torch_digests("module_attention.pt"));
  EXPECT_EQ(attention.key.weight.storage(),
            attention.query.weight.storage());  // parts of one tensor, as views

  // The same by rules, into members of the user's own.
  struct Split {
    Tensor q, k, v, out_weight, packed_bias, out_bias;
  } split;

  EXPECT_TRUE(load(split, kTorchFiles + "module_attention.pt",
                   {.rename = {{R"(^out_proj\.)", "out_"}, {"^in_proj_bias$", "packed_bias"}},
                    .rules = {rules::Split{"^in_proj_weight$", {"q", "k", "v"}}},
                    .unused = OnUnused::error})
                  .complete());
  EXPECT_EQ(floats(split.k.t()), floats(attention.key.weight));
}

TEST(Asks, N27_ATensorIsChangedByARule) {  // #4080
  struct Model {
    Tensor weight{DType::f16, {1, 3, 2}};
  } model;

  load(model, kTorchFiles + "import_linear_with_bias.pt",
       {.rules = {rules::Change{
            R"(^fc1\.weight$)", {rules::Reshape{{1, 3, 2}}, rules::Cast{DType::f16}}, "weight"}}});
  EXPECT_EQ(model.weight.dtype(), DType::f16);
  EXPECT_EQ(digest(model.weight), torch_digests("import_linear_with_bias_half.pt").at("fc1.weight"));
}

TEST(Asks, N28_ADtypePolicyIsExplicit) {  // #5163
  struct Model {
    nn::Linear fc1{2, 3};
    nn::Linear fc2{3, 4, {.bias = false}};
  };

  Checkpoint bf16 = cast(open(kTorchFiles + "import_linear.pt"), Precision::bf16);
  Model keep;
  load(keep, bf16);
  EXPECT_EQ(keep.fc1.weight.dtype(), DType::bf16);
  Model as_model;
  for_each_tensor(as_model, [](std::string_view, Tensor& tensor, LayerKind) {
    tensor = Tensor(DType::f16, tensor.shape());
  });
  const LoadReport report = load(as_model, bf16, {.dtype = Precision::as_model});
  EXPECT_EQ(as_model.fc1.weight.dtype(), DType::f16);
  EXPECT_EQ(report.cast.at(0).detail, "BF16 → F16");
}

TEST(Asks, N29_TheFilesDtypeIsKept) {  // #4194
  TwoLinear model;
  EXPECT_THAT(load(model, kTorchFiles + "import_linear_half.pt").cast, IsEmpty());
  EXPECT_EQ(model.fc1.weight.dtype(), DType::f16);
}

TEST(Asks, N30_SavedInHalfAndLoadedInFull) {  // #202
  TwoLinear model;
  load(model, kTorchFiles + "import_linear.pt");
  for (const std::string name : {"half.safetensors", "half.pt"}) {
    save(model, output(name), {.dtype = Precision::half, .overwrite = true});
    EXPECT_EQ(digest(open(output(name)).tensor("fc1.weight")),
              torch_digests("import_linear_half.pt").at("fc1.weight"));
    TwoLinear full;
    load(full, output(name), {.dtype = Precision::full});
    EXPECT_EQ(full.fc1.weight.dtype(), DType::f32);
    EXPECT_EQ(floats(full.fc1.weight)[0], floats(model.fc1.weight.to(DType::f16))[0]);
  }
}

TEST(Asks, N31_OptimizerStateIsFoundByTheParametersPath) {  // #5130
  const Checkpoint file = open(kTorchFiles + "optim_adam.pt");
  const OptimizerState state = optimizer_state(file);
  const FoundRoot weights = find_root(file);
  ASSERT_FALSE(state.parameters.empty());
  for (const ParameterState& parameter : state.parameters) {
    // A load pairs key and path; the optimizer's state has the key.
    EXPECT_TRUE(weights.checkpoint.contains(parameter.name)) << parameter.name;
    if (parameter.values.empty()) continue;  // it never had a gradient
    EXPECT_EQ(parameter.value("exp_avg").tensor_value().tensor.shape(),
              weights.checkpoint.tensor(parameter.name).shape());
  }
}

TEST(Asks, N34_BackToPytorchAndSafetensors) {  // #2407; that torch reads it: torch.ReadsWhatWeWrite
  TwoLinear model;
  load(model, kTorchFiles + "import_linear.pt");
  for (const std::string name : {"back.pt", "back.safetensors"}) {
    save(model, output(name), {.overwrite = true});
    Digests written;
    for (const Entry& entry : open(output(name)))
      written.emplace(std::string(entry.name), digest(entry.tensor()));
    EXPECT_EQ(written, torch_digests("import_linear.pt"));
  }
}

TEST(Asks, N35_TheContentSaysWhatAFileIs) {  // #3218
  const auto refusal = [](auto&& open_it) -> std::string {
    try {
      open_it();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal([] { static_cast<void>(safetensors::open(kTorchFiles + "import_linear.pt")); }),
              HasSubstr("PyTorch"));
  // Whatever its name, open() and load() take it.
  const std::string misnamed = output("misnamed.safetensors");
  std::ofstream(misnamed, std::ios::binary)
      << std::ifstream(kTorchFiles + "import_linear.pt", std::ios::binary).rdbuf();
  TwoLinear model;
  EXPECT_TRUE(load(model, misnamed).complete());
}

TEST(Asks, N36_OneConversionWithRules) {  // #1463; the command: tests/cli/test_convert.py
  const std::string rules = output("rules.json");
  std::ofstream(rules)
      << R"({"rules": [{"match": "^fc1\\.", "to": "first."}, {"match": "^fc2", "drop": true}]})";
  convert(kTorchFiles + "import_linear.pt", output("ruled.safetensors"),
          {.rules = rules::read(rules), .overwrite = true});
  std::vector<std::string> names;
  for (const Entry& entry : open(output("ruled.safetensors"))) names.emplace_back(entry.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("first.weight", "first.bias"));
}

TEST(Asks, N37_TiedWeightsAreTiedByAnAliasAndStoredOnce) {  // tracel-ai/models#97
  struct Model {
    nn::Embedding embed{10, 3};
    nn::Linear lm_head{3, 10, {.bias = false}};
  } model;

  EXPECT_TRUE(load(model, kTorchFiles + "import_embedding.pt",
                   {.rules = {rules::Alias{R"(^embed\.weight$)", "lm_head.weight"}}})
                  .complete());
  EXPECT_TRUE(model.lm_head.weight.t().same_view(model.embed.weight));
  save(model, output("tied.safetensors"), {.overwrite = true});
  EXPECT_EQ(safetensors::open(output("tied.safetensors")).size(), 1U);
  EXPECT_EQ(ties(open(output("tied.safetensors"))), (std::vector<Tie>{{.tensor = 1, .first = 0}}));
  Model again;
  EXPECT_TRUE(load(again, output("tied.safetensors")).complete());
  EXPECT_TRUE(again.lm_head.weight.t().same_view(again.embed.weight));
}

}  // namespace
}  // namespace ballast
