// SPDX-License-Identifier: Apache-2.0
// Burn's import cases on files PyTorch wrote: each model is loaded and written back in
// PyTorch's layout, and the bytes of every tensor are compared with what PyTorch says they are (SHA-256 in
// expect.json). Forward comparisons come with the operations.
#include "model/import_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string file(const std::string& name) {
  return kTorchFiles + "import_" + name;
}

Digests digests(const std::string& name) {
  return torch_digests("import_" + name);
}

// Every tensor of the file is in the model, under the key `rename` gives it, byte for byte.
template <class Model>
void expect_all(Model& model, const std::string& name, const LoadOptions& options = {}) {
  const LoadReport report = load(model, file(name), options);
  EXPECT_TRUE(report.complete()) << report;
  EXPECT_THAT(report.unused, IsEmpty());
  const auto expected = digests(name);
  std::size_t compared = 0;
  const Checkpoint written = to_checkpoint(model);
  for (const LoadReport::Item& item : report.applied) {
    ASSERT_TRUE(expected.contains(item.source)) << item.source;
    // Written keys are those after renaming, with the file's positions compacted.
    for (const Entry& entry : written) {
      if (digest(entry.tensor()) == expected.at(item.source)) {
        ++compared;
        break;
      }
    }
  }
  EXPECT_EQ(compared, report.applied.size());
  EXPECT_EQ(report.applied.size(), expected.size());
}

// The same, and each tensor under its own name.
template <class Model>
void expect_same(const std::string& name) {
  for (const char* variant : {"", "_half", "_legacy"}) {
    SCOPED_TRACE(name + variant);
    const auto expected = digests(name + variant + ".pt");
    if (expected.empty()) continue;
    Model model;
    expect_all(model, name + variant + ".pt");
    EXPECT_EQ(digests_of(model), expected);
  }
  // What "half" meant when Burn had it: a float file loaded as float16.
  if (const auto expected = digests(name + "_half.pt"); !expected.empty()) {
    Model model;
    EXPECT_TRUE(
        load(model, file(name + ".pt"), {.dtype = Precision::half, .keep_statistics = false}).complete());
    EXPECT_EQ(digests_of(model), expected);
  }
}

struct Norm2d {
  nn::BatchNorm2d norm1{5};
};

struct Table {
  Tensor buffer;
};

template <class Conv>
struct Chain {
  Conv conv1{2, 2, 2};
  Conv conv2{2, 2, 2, {.bias = false}};
};

struct Embed {
  nn::Embedding embed{10, 3};
};

struct Group {
  nn::GroupNorm norm1{2, 6};
};

struct Layer {
  nn::LayerNorm norm1{2};
};

struct TwoLinear {
  nn::Linear fc1{2, 3};
  nn::Linear fc2{3, 4, {.bias = false}};
};

struct OneLinear {
  nn::Linear fc1{2, 3};
};

struct MultiLayer {
  nn::Conv2d conv1{3, 4, 3, {.padding = 1}};
  nn::BatchNorm2d norm1{4};
  nn::Linear fc1{256, 16};
};

struct ConvNorm1 {
  nn::Conv2d conv{2, 4, {3, 2}};
  nn::BatchNorm2d norm{4};
};

struct ConvNorm2 {
  nn::Conv2d conv{4, 6, {3, 2}};
  nn::BatchNorm2d norm{6};
};

struct ComplexNested {
  std::tuple<ConvNorm1, ConvNorm2> conv_blocks;
  nn::BatchNorm2d norm1{6};
  nn::Linear fc1{120, 12};
  nn::Linear fc2{12, 10};
};

TEST(Import, BatchNorm2d) {
  expect_same<Norm2d>("batch_norm2d");
}

TEST(Import, Boolean) {
  expect_same<Table>("boolean");
}

TEST(Import, Buffer) {
  expect_same<Table>("buffer");
}

TEST(Import, Integer) {
  expect_same<Table>("integer");
}

TEST(Import, Conv1d) {
  expect_same<Chain<nn::Conv1d>>("conv1d");
}

TEST(Import, Conv2d) {
  expect_same<Chain<nn::Conv2d>>("conv2d");
}

TEST(Import, ConvTranspose1d) {
  expect_same<Chain<nn::ConvTranspose1d>>("conv_transpose1d");
}

TEST(Import, ConvTranspose2d) {
  expect_same<Chain<nn::ConvTranspose2d>>("conv_transpose2d");
}

TEST(Import, Embedding) {
  expect_same<Embed>("embedding");
}

TEST(Import, GroupNorm) {
  expect_same<Group>("group_norm");
}

TEST(Import, LayerNorm) {
  expect_same<Layer>("layer_norm");
}

TEST(Import, Linear) {
  expect_same<TwoLinear>("linear");
}

TEST(Import, LinearWithBias) {
  expect_same<OneLinear>("linear_with_bias");
}

TEST(Import, MultiLayer) {
  expect_same<MultiLayer>("multi_layer");
}

TEST(Import, ComplexNestedFullRecord) {
  expect_same<ComplexNested>("complex_nested");
}

TEST(Import, HalfLeavesBatchNormsAsTheyAre) {  // as Burn's half adapter does: running_var underflows
  ComplexNested model;
  load(model, file("complex_nested.pt"), {.dtype = Precision::half});
  EXPECT_EQ(model.fc1.weight.dtype(), DType::f16);
  EXPECT_EQ(model.norm1.running_var.dtype(), DType::f32);
  EXPECT_EQ(model.norm1.gamma.dtype(), DType::f32);
}

TEST(Import, IntegerKeepsItsDtype) {
  Table model;
  load(model, file("integer.pt"), {.dtype = Precision::half});
  EXPECT_EQ(model.buffer.dtype(), DType::i64);
  EXPECT_THAT(model.buffer.span<std::int64_t>(), ElementsAre(1, 2, 3));
}

TEST(Import, PartialModelLoading) {
  struct Partial {
    ConvNorm1 conv1;
    bool extra_field = true;
  } model;

  const LoadReport report =
      load(model, file("complex_nested.pt"), {.rename = {{R"(conv_blocks\.0\.(.*))", "conv1.$1"}}});
  EXPECT_EQ(report.applied.size(), 7U);
  EXPECT_TRUE(model.extra_field);
  EXPECT_EQ(digest(model.conv1.norm.running_var),
            digests("complex_nested.pt").at("conv_blocks.0.norm.running_var"));
}

TEST(Import, EnumModuleIsInferredFromTheFile) {
  struct Dws {
    nn::Conv2d dconv{2, 2, 3, {.groups = 2}};
    nn::Conv2d pconv{2, 2, 1};
  };

  struct Plain {
    Flat<nn::Conv2d> conv{{2, 2, 3}};
  };

  struct Model {
    std::variant<Dws, Plain> conv;
  };

  for (const std::string precision : {"", "_half"}) {
    Model model;
    expect_all(model, "enum_depthwise_false" + precision + ".pt");
    EXPECT_TRUE(std::holds_alternative<Plain>(model.conv));
    expect_all(model, "enum_depthwise_true" + precision + ".pt");
    EXPECT_TRUE(std::holds_alternative<Dws>(model.conv));
  }
}

TEST(Import, KeyRemap) {
  Chain<nn::Conv2d> model;
  expect_all(model, "key_remap.pt", {.rename = {{R"(conv\.(.*))", "$1"}}});
}

TEST(Import, KeyRemapChained) {
  struct Block {
    nn::Conv2d conv{6, 6, 1, {.bias = false}};
    nn::BatchNorm2d bn{6};
  };

  struct Blocks {
    std::vector<Block> blocks = nn::repeat<Block>(2);
  };

  struct Model {
    nn::Conv2d conv{3, 6, 3, {.bias = false}};
    nn::BatchNorm2d bn{6};
    Blocks layer;
  };

  const std::vector<RenameRule> rules{{R"((.+)\.block\.0\.(.+))", "$1.conv.$2"},
                                      {R"((.+)\.block\.1\.(.+))", "$1.bn.$2"},
                                      {R"(layer\.([0-9])\.(.+))", "layer.blocks.$1.$2"}};
  for (const std::string variant : {"", "_half", "_legacy"}) {
    Model model;
    expect_all(model, "key_remap_chained" + variant + ".pt", {.rename = rules});
  }
  Model incomplete;
  EXPECT_THROW(load(incomplete, file("key_remap_chained.pt"), {.rename = {rules[0], rules[1]}}), LoadError);
}

TEST(Import, MissingModuleFieldIsNamed) {
  struct Model {
    nn::Conv2d do_not_exist_in_pt{2, 2, {2, 2}};
  } model;

  try {
    load(model, file("missing_module_field.pt"));
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), HasSubstr("do_not_exist_in_pt"));
    EXPECT_THAT(error.what(), HasSubstr(file("missing_module_field.pt")));
  }
}

TEST(Import, NonContiguousIndexes) {
  struct Model {
    std::vector<nn::Conv2d> fc = nn::repeat<nn::Conv2d>(5, 2, 2, 3);
  };

  for (const std::string variant : {"", "_half", "_legacy"}) {
    const auto expected = digests("non_contiguous_indexes" + variant + ".pt");
    Model model;
    expect_all(model, "non_contiguous_indexes" + variant + ".pt");
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_EQ(digest(model.fc[i].weight), expected.at("fc." + std::to_string(2 * i) + ".weight"));
  }
}

TEST(Import, TopLevelKey) {
  struct Model {
    nn::Conv2d conv1{2, 2, {2, 2}};
  } model;

  EXPECT_TRUE(load(model, file("top_level_key.pt"), {.root = "my_state_dict"}).complete());
  // The only state dict there is is found, and said.
  nn::Linear linear{2, 2};
  const LoadReport found = load(linear, file("config.pt"), {.unused = OnUnused::error});
  EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("\"my_model\"")));
  EXPECT_EQ(found.file, file("config.pt"));

  // A model with a member of that name means the whole file.
  struct Whole {
    nn::Linear my_model{2, 2};
  } whole;

  EXPECT_TRUE(load(whole, file("config.pt")).complete());
  // So does an empty root: the state dict is then not looked for, and its keys have its name before them.
  EXPECT_THROW(load(linear, file("config.pt"), {.root = ""}), LoadError);
  EXPECT_TRUE(load(whole, file("config.pt"), {.root = ""}).complete());
  try {
    load(model, file("top_level_key.pt"), {.root = "my_statedict"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("my_state_dict"));
  }
}

TEST(Import, SavedInPytorchsLayoutAndLoadedAgain) {
  TwoLinear model;
  load(model, file("linear.pt"));
  for (const std::string name : {"linear_again.pt", "linear_again.safetensors"}) {
    const std::string path = std::string(BALLAST_TEST_OUTPUT "/") + name;
    save(model, path, {.overwrite = true});
    TwoLinear again;
    EXPECT_TRUE(load(again, path, {.unused = OnUnused::error}).complete());
    const auto expected = digests("linear.pt");
    for (const Entry& entry : open(path))
      EXPECT_EQ(digest(entry.tensor()), expected.at(std::string(entry.name))) << entry.name;
  }
}

}  // namespace
}  // namespace ballast
