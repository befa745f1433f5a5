// SPDX-License-Identifier: Apache-2.0
#include "ballast/load.h"

#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Net {
  nn::Conv2d conv1{2, 2, {2, 2}};
  nn::Conv2d conv2{2, 2, {2, 2}, {.bias = false}};
};

Checkpoint net_file(const std::string& prefix = "") {
  return checkpoint({{prefix + "conv1.weight", {2, 2, 2, 2}},
                     {prefix + "conv1.bias", {2}},
                     {prefix + "conv2.weight", {2, 2, 2, 2}}});
}

TEST(Load, TakesEveryTensorByName) {
  Net net;
  const Checkpoint file = net_file();
  const LoadReport report = load(net, file);
  EXPECT_THAT(targets(report.applied), ElementsAre("conv1.weight", "conv1.bias", "conv2.weight"));
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.unused, IsEmpty());
  EXPECT_TRUE(net.conv1.weight.same_view(file.tensor("conv1.weight")));  // a view, not a copy
  EXPECT_FALSE(net.conv2.bias.defined());
}

TEST(Load, MissingIsAnErrorThatCarriesTheReportAndLeavesTheModel) {
  struct Model {
    nn::Conv2d conv1{2, 2, {2, 2}};
    nn::Conv2d do_not_exist_in_pt{2, 2, {2, 2}};
  } model;

  const LoadReport report = failed_load(model, net_file());
  EXPECT_THAT(targets(report.missing), ElementsAre("do_not_exist_in_pt.weight", "do_not_exist_in_pt.bias"));
  EXPECT_THAT(report.text(), HasSubstr("do_not_exist_in_pt.weight"));
  EXPECT_FALSE(model.conv1.weight.has_data());
}

TEST(Load, MissingMayBeKeptOrInitialised) {
  struct Model {
    nn::Conv2d conv1{2, 2, {2, 2}};
    nn::Linear head{4, 3};
    nn::LayerNorm norm{3};
  };

  Model kept;
  const LoadReport partial = load(kept, net_file(), {.missing = OnMissing::keep});
  EXPECT_THAT(targets(partial.missing), ElementsAre("head.weight", "head.bias", "norm.gamma", "norm.beta"));
  EXPECT_TRUE(kept.conv1.weight.has_data());
  EXPECT_FALSE(kept.head.weight.has_data());
  Model made;
  const LoadReport report = load(made, net_file(), {.missing = OnMissing::init});
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.initialized, SizeIs(4));
  EXPECT_EQ(floats(made.norm.gamma), (std::vector<float>{1, 1, 1}));
  const auto weight = floats(made.head.weight);
  for (const float value : weight) EXPECT_LE(std::abs(value), 0.5F);  // 1 / sqrt(4)
  EXPECT_NE(weight[0], weight[1]);
  Model again;
  load(again, net_file(), {.missing = OnMissing::init});
  EXPECT_EQ(floats(again.head.weight), weight);
}

TEST(Load, UnusedIsReportedAndMayBeAnError) {
  Net net;
  Checkpoint file = net_file();
  file.add("extra", counting({3}));
  const LoadReport report = load(net, file);
  ASSERT_THAT(report.unused, SizeIs(1));
  EXPECT_EQ(report.unused[0].source, "extra");
  EXPECT_EQ(report.unused[0].detail, "F32 [3]");
  Net strict;
  EXPECT_THAT(failed_load(strict, file, {.unused = OnUnused::error}).unused, SizeIs(1));
  EXPECT_FALSE(strict.conv1.weight.has_data());
}

TEST(Load, ShapesMustBeEqual) {
  Net net;
  const LoadReport report = failed_load(
      net, checkpoint({{"conv1.weight", {2, 2, 3, 2}}, {"conv1.bias", {2}}, {"conv2.weight", {2, 2, 2, 2}}}));
  ASSERT_THAT(report.mismatched, SizeIs(1));
  EXPECT_EQ(report.mismatched[0].file_shape, (Shape{2, 2, 3, 2}));
  EXPECT_EQ(report.mismatched[0].model_shape, (Shape{2, 2, 2, 2}));
  EXPECT_THAT(report.text(), HasSubstr("conv1.weight: file [2, 2, 3, 2], model [2, 2, 2, 2]"));
  EXPECT_FALSE(net.conv1.bias.has_data());
  Net lenient;
  EXPECT_THAT(
      load(lenient,
           checkpoint({{"conv1.weight", {2, 2, 3, 2}}, {"conv1.bias", {2}}, {"conv2.weight", {2, 2, 2, 2}}}),
           {.mismatched = OnMismatch::keep})
          .mismatched,
      SizeIs(1));
  EXPECT_FALSE(lenient.conv1.weight.has_data());
  EXPECT_TRUE(lenient.conv1.bias.has_data());
}

TEST(Load, PartsOfAVocabularyAreRefusedClearly) {
  struct Model {
    nn::Embedding tokens{10, 3};
  } model;

  EXPECT_THAT(failed_load(model, checkpoint({{"tokens.weight", {8, 3}}})).text(),
              HasSubstr("parts of a tensor are never loaded"));
  const auto sliced = load(model, checkpoint({{"tokens.weight", {12, 3}}}),
                           {.rules = {rules::Change{"^tokens", {rules::Slice{.dim = 0, .stop = 10}}, {}}}});
  EXPECT_TRUE(sliced.complete());
}

TEST(Load, AnUnshapedTensorTakesWhatTheFileHas) {
  struct Model {
    Tensor buffer;
    Tensor flags;
  } model;

  Checkpoint file = checkpoint({{"buffer", {3, 3}}});
  file.add("flags", Tensor::from<bool>({true, false, true}, {3}));
  load(model, file);
  EXPECT_EQ(model.buffer.shape(), (Shape{3, 3}));
  EXPECT_EQ(model.flags.dtype(), DType::boolean);
}

TEST(Load, ConfigurationMembersAreLeftAlone) {
  struct Model {
    nn::Conv2d conv1{2, 2, {2, 2}};
    bool extra_field = true;
    std::string name = "net";
    Dims padding = {0, 1};
    std::vector<Shape> sizes = {{2, 3}};
  } model;

  load(model, net_file());
  EXPECT_TRUE(model.extra_field);
  EXPECT_EQ(model.name, "net");
  EXPECT_EQ(model.padding, (Dims{0, 1}));
  EXPECT_EQ(model.sizes.front(), (Shape{2, 3}));
}

TEST(Load, RenamesThenFilters) {
  Net net;
  const LoadReport report = load(net, net_file("conv."), {.rename = {{R"(^conv\.(.*))", "$1"}}});
  EXPECT_THAT(report.renamed, SizeIs(3));
  EXPECT_EQ(report.applied[0].source, "conv.conv1.weight");
  EXPECT_EQ(report.applied[0].target, "conv1.weight");
  Net again;
  const LoadReport filtered =
      load(again, net_file("conv."),
           {.rename = {{R"(^conv\.(.*))", "$1"}}, .include = {R"(^conv1\.)"}, .exclude = {R"(\.bias$)"}});
  EXPECT_THAT(targets(filtered.applied), ElementsAre("conv1.weight"));
  EXPECT_THAT(targets(filtered.skipped), ElementsAre("conv1.bias", "conv2.weight"));
  EXPECT_THAT(filtered.unused, IsEmpty());
}

TEST(Load, AFilterAlsoSparesWhatTheFileDoesNotHave) {
  struct Model {
    nn::Conv2d conv1{2, 2, {2, 2}};
    nn::Linear head{2, 2};
  } model;

  const LoadReport report = load(model, net_file(), {.include = {R"(^conv1\.)"}});
  EXPECT_THAT(targets(report.skipped), ElementsAre("head.weight", "head.bias"));
  EXPECT_TRUE(report.complete());
}

// "key_remap_chained" of README.md, with and without the last rule
TEST(Load, ChainedRenames) {
  struct ConvBlock {
    nn::Conv2d conv{6, 6, 1};
    nn::BatchNorm2d bn{6};
  };

  struct Layer {
    std::vector<ConvBlock> blocks = nn::repeat<ConvBlock>(2);
  };

  struct Model {
    nn::Conv2d conv{3, 6, 3};
    Layer layer;
  };

  std::vector<std::pair<std::string, Shape>> tensors{{"conv.weight", {6, 3, 3, 3}}, {"conv.bias", {6}}};
  for (const std::string i : {"0", "1"}) {
    tensors.insert(tensors.end(),
                   {{"layer." + i + ".block.0.weight", {6, 6, 1, 1}}, {"layer." + i + ".block.0.bias", {6}}});
    for (const std::string name : {"weight", "bias", "running_mean", "running_var"})
      tensors.emplace_back("layer." + i + ".block.1." + name, Shape{6});
  }
  const std::vector<RenameRule> rules{{R"((.+)\.block\.0\.(.+))", "$1.conv.$2"},
                                      {R"((.+)\.block\.1\.(.+))", "$1.bn.$2"},
                                      {R"(layer\.([0-9])\.(.+))", "layer.blocks.$1.$2"}};
  Model model;
  EXPECT_TRUE(load(model, checkpoint(tensors), {.rename = rules}).complete());
  EXPECT_EQ(floats(model.layer.blocks[1].bn.gamma),
            floats(checkpoint(tensors).tensor("layer.1.block.1.weight")));
  Model without;
  const LoadReport report = failed_load(without, checkpoint(tensors), {.rename = {rules[0], rules[1]}});
  // The tool proposes what is missing, ready to paste.
  ASSERT_FALSE(report.suggestions.empty());
  std::vector<RenameRule> proposed{rules[0], rules[1]};
  proposed.insert(proposed.end(), report.suggestions.begin(), report.suggestions.end());
  EXPECT_TRUE(load(without, checkpoint(tensors), {.rename = proposed}).complete()) << report;
}

TEST(Load, WrapperPrefixesGoUnlessTheModelHasThem) {
  Net net;
  const LoadReport report = load(net, net_file("module._orig_mod."));
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("module._orig_mod.")));
  EXPECT_EQ(report.applied[0].source, "module._orig_mod.conv1.weight");

  struct Wrapped {
    Net module;
  } wrapped;

  EXPECT_TRUE(load(wrapped, net_file("module.")).complete());
  Net told;
  EXPECT_FALSE(failed_load(told, net_file("module."), {.strip_prefixes = false}).complete());
}

TEST(Load, ProposedRulesFitKeysWhosePrefixIsRemovedAfterThem) {
  struct Model {
    nn::Linear stem{4, 8};
    nn::Linear head{8, 3};
  };

  for (const std::string prefix : {"module.", "_orig_mod.", "module._orig_mod."}) {
    const Checkpoint file = checkpoint({{prefix + "backbone.stem.weight", {8, 4}},
                                        {prefix + "backbone.stem.bias", {8}},
                                        {prefix + "classifier.weight", {3, 8}},
                                        {prefix + "classifier.bias", {3}}});
    Model model;
    const LoadReport report = failed_load(model, file);
    const LoadReport again = load(model, file, {.rename = report.suggestions});
    EXPECT_TRUE(again.complete()) << report;
    EXPECT_THAT(again.text(), Not(HasSubstr("matched no key")));
  }
}

TEST(Load, SeveralFilesMakeOneModel) {
  struct Model {
    nn::Linear encoder{2, 3};
    nn::Linear head{3, 1};
  } model;

  const auto encoder = checkpoint({{"encoder.weight", {3, 2}}, {"encoder.bias", {3}}});
  const auto head = checkpoint({{"head.weight", {1, 3}}, {"head.bias", {1}}});
  EXPECT_TRUE(load(model, std::vector<Checkpoint>{encoder, head}).complete());
  EXPECT_EQ(floats(model.head.weight), floats(head.tensor("head.weight")));
  // A part of a model is a model too.
  Model apart;
  load(apart.encoder, checkpoint({{"weight", {3, 2}}, {"bias", {3}}}));
  EXPECT_TRUE(apart.encoder.weight.has_data());
  EXPECT_FALSE(apart.head.weight.has_data());
}

TEST(Load, DtypePolicies) {
  struct Model {
    nn::Linear fc{2, 1, {.bias = false}};
    Tensor ids;
  };

  Checkpoint file;
  file.add("fc.weight", Tensor::from<float>({1e6F, 0.5F}, {1, 2}));
  file.add("ids", Tensor::from<std::int64_t>({1, 2, 3}, {3}));
  const auto with = [&](Precision precision) {
    Model model;
    LoadReport report = load(model, file, {.dtype = precision});
    EXPECT_EQ(model.ids.dtype(), DType::i64);
    return std::pair(model, report);
  };
  EXPECT_EQ(with(Precision::keep).first.fc.weight.dtype(), DType::f32);
  EXPECT_THAT(with(Precision::keep).second.cast, IsEmpty());
  const auto [half, report] = with(Precision::half);
  EXPECT_EQ(half.fc.weight.dtype(), DType::f16);
  ASSERT_THAT(report.cast, SizeIs(1));
  EXPECT_EQ(report.cast[0].detail, "F32 → F16, 1 values became infinite");
  EXPECT_THAT(report.text(), HasSubstr("fc.weight F32 → F16, 1 values became infinite"));
  EXPECT_EQ(with(Precision::bf16).second.cast[0].detail, "F32 → BF16, 1 values rounded");
  Model bf16;
  bf16.fc.weight = Tensor(DType::bf16, {2, 1});
  load(bf16, file, {.dtype = Precision::as_model});
  EXPECT_EQ(bf16.fc.weight.dtype(), DType::bf16);
}

TEST(Load, AnotherKindOfDtypeIsAMismatch) {
  struct Model {
    nn::Linear fc{2, 1, {.bias = false}};
  } model;

  Checkpoint file;
  file.add("fc.weight", Tensor::from<std::int8_t>({1, 2}, {1, 2}));
  EXPECT_THAT(failed_load(model, file).text(),
              HasSubstr("the file holds I8, the model wants F32 (a quantized file?)"));
}

TEST(Load, TiedTensorsStayTied) {
  struct Model {
    nn::Embedding wte{4, 3};
    nn::Linear lm_head{3, 4, {.bias = false}};
  };

  Checkpoint file;
  const Tensor shared = counting({4, 3});
  file.add("wte.weight", shared);
  file.add("lm_head.weight", shared);
  Model model;
  load(model, file);
  EXPECT_TRUE(model.lm_head.weight.t().same_view(model.wte.weight));
  Model half;
  load(half, file, {.dtype = Precision::half});
  EXPECT_TRUE(half.lm_head.weight.t().same_view(half.wte.weight));
  EXPECT_EQ(floats(half.wte.weight), floats(shared));
  // Saved once; the other name is explained, and found again.
  const Checkpoint saved = to_checkpoint(model);
  EXPECT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved.metadata->at("lm_head.weight"), "wte.weight");
  Model again;
  EXPECT_TRUE(load(again, saved).complete());
  EXPECT_TRUE(again.lm_head.weight.t().same_view(again.wte.weight));
  // A file that has only one of the two names: an alias.
  Checkpoint one;
  one.add("wte.weight", shared);
  Model aliased;
  EXPECT_TRUE(load(aliased, one, {.rules = {rules::Alias{R"(^wte\.weight$)", "lm_head.weight"}}}).complete());
}

TEST(Load, AMemberSharedByTwoNamesNeedsOneOfThem) {
  struct Model {
    std::shared_ptr<nn::Linear> a = std::make_shared<nn::Linear>(2, 2, nn::LinearOptions{.bias = false});
    std::shared_ptr<nn::Linear> b = a;
  } model;

  EXPECT_TRUE(load(model, checkpoint({{"b.weight", {2, 2}}})).complete());
  EXPECT_TRUE(model.a->weight.has_data());
}

TEST(Load, ReportAsJson) {
  Net net;
  Checkpoint file = net_file();
  file.add("a\"b", counting({1}));
  const std::string json = load(net, file).to_json();
  EXPECT_THAT(
      json,
      HasSubstr(
          R"({"schema":1,"file":"test.pt","complete":true,"failed":false,"applied":[{"source":"conv1.weight","target":"conv1.weight","detail":""})"));
  EXPECT_THAT(json, HasSubstr(R"("unused":[{"source":"a\"b","target":"","detail":"F32 [1]"}])"));
}

TEST(Load, DebugPrintShowsKeysBeforeAndAfter) {
  Checkpoint file = checkpoint({{"conv.b", {2}}, {"a", {2, 2}}});
  EXPECT_EQ(debug_keys(file, {.rename = {{R"(^conv\.)", "z."}}}),
            "Debug information of keys and tensor shapes:\n---\n"
            "Key: a\nShape: [2, 2]\nDtype: F32\n---\n"
            "Original Key: conv.b\nRemapped Key: z.b\nShape: [2]\nDtype: F32\n---\n");
}

TEST(Load, AnInvalidPatternIsOneErrorAndTheModelUntouched) {
  Net net;
  EXPECT_THROW(load(net, net_file(), {.rename = {{"(", ""}}}), Error);
  EXPECT_THROW(load(net, net_file(), {.include = {"["}}), Error);
  EXPECT_FALSE(net.conv1.weight.has_data());
}

TEST(Load, ConstructionAllocatesNoParameters) {
  const nn::Linear huge{1 << 20, 1 << 20};
  EXPECT_FALSE(huge.weight.has_data());
  EXPECT_EQ(huge.weight.size_bytes(), std::uint64_t{1} << 42U);
}

}  // namespace
}  // namespace ballast
