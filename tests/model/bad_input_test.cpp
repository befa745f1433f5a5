// SPDX-License-Identifier: Apache-2.0
// Everything that can be wrong with a file, a model or the options between them: one clear error each, and
// the model as it was before.
#include <fstream>
#include <iostream>
#include <sstream>

#include "ballast/safetensors.h"
#include "model/import_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

struct TwoLinear {
  nn::Linear fc1{2, 3};
  nn::Linear fc2{3, 4, {.bias = false}};
};

// Loads with values in it, so that "untouched" can be seen.
template <class Model = TwoLinear>
std::string refusal(const std::string& path, const LoadOptions& options, Errc code) {
  Model model;
  for_each_tensor(model,
                  [](std::string_view, Tensor& tensor, LayerKind) { tensor = counting(tensor.shape(), 7); });
  const Digests before = digests_of(model);
  try {
    load(model, path, options);
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    EXPECT_EQ(digests_of(model), before);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

const std::string kLinear = kTorchFiles + "import_linear.pt";

TEST(BadInput, AWholeModelLoadsAndSaysSo) {
  struct Model {
    nn::Linear fc1{3, 4};
    nn::Linear fc2{4, 2};
  } model;

  const LoadReport report = load(model, kTorchFiles + "module_custom.pt");
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.notes, Contains(HasSubstr("holds a whole model")));
  EXPECT_THAT(report.text(), HasSubstr("holds a whole model"));
}

TEST(BadInput, AStateDictUnderAKeyIsFound) {
  nn::Linear model{2, 2};
  EXPECT_THAT(load(model, kTorchFiles + "import_config.pt").notes, Contains(HasSubstr("\"my_model\"")));
}

TEST(BadInput, SeveralStateDictsAreListed) {
  const std::string tie = refusal(kImportFiles + "two_models.pt", {}, Errc::invalid_argument);
  EXPECT_THAT(tie,
              HasSubstr(R"("teacher.model" (3 tensors, 84 bytes), "student.model" (3 tensors, 84 bytes))"));
  // Under names nobody uses for a state dict the whole file could be meant, but it does not fit the model.
  const std::string parts = refusal(kImportFiles + "two_parts.pt", {}, Errc::invalid_argument);
  EXPECT_THAT(parts, HasSubstr(R"("teacher" (3 tensors, 84 bytes), "student" (3 tensors, 84 bytes))"));
  TwoLinear model;
  EXPECT_TRUE(load(model, kImportFiles + "two_parts.pt", {.root = "student"}).complete());
}

TEST(BadInput, AKeyThatIsNotThere) {
  EXPECT_THAT(refusal(kTorchFiles + "import_top_level_key.pt", {.root = "my_state_dct"}, Errc::not_found),
              AllOf(HasSubstr("\"my_state_dct\""), HasSubstr("\"my_state_dict\"")));
  EXPECT_THAT(refusal(kTorchFiles + "import_config.pt", {.root = "my_config.some_int"}, Errc::type_mismatch),
              HasSubstr("not a dict of tensors"));
}

TEST(BadInput, WrongShape) {
  struct Model {
    nn::Linear fc1{2, 4};
    nn::Linear fc2{3, 4, {.bias = false}};
  };

  EXPECT_THAT(refusal<Model>(kLinear, {}, Errc::load_failed),
              HasSubstr("fc1.weight: file [3, 2], model [4, 2]"));  // torch's [out, in]
}

TEST(BadInput, WrongDtype) {
  struct Model {
    Tensor buffer{DType::f32, {3}};
  };

  EXPECT_THAT(refusal<Model>(kTorchFiles + "import_integer.pt", {}, Errc::load_failed),
              HasSubstr("the file holds I64, the model wants F32"));
}

TEST(BadInput, MissingField) {
  struct Model {
    nn::Linear fc1{2, 3};
    nn::Linear fc9{3, 4};
  };

  EXPECT_THAT(refusal<Model>(kLinear, {}, Errc::load_failed), HasSubstr("fc9.weight"));
}

TEST(BadInput, ExtraField) {
  struct Model {
    nn::Linear fc1{2, 3};
  };

  EXPECT_THAT(refusal<Model>(kLinear, {.unused = OnUnused::error}, Errc::load_failed),
              HasSubstr("fc2.weight"));
}

struct Fast {
  Tensor weight{DType::f32, {3, 2}};
  Tensor bias{DType::f32, {3}};
};

struct Slow {
  Tensor weight{DType::f32, {3, 2}};
  Tensor bias{DType::f32, {3}};
};

TEST(BadInput, AmbiguousVariant) {
  struct Model {
    std::variant<Fast, Slow> fc1;
  };

  EXPECT_THAT(refusal<Model>(kLinear, {}, Errc::load_failed),
              HasSubstr("Fast and Slow fit the file equally well"));
}

TEST(BadInput, NoVariantFits) {
  struct Model {
    std::variant<Fast, Slow> fc2;
  };

  EXPECT_THAT(refusal<Model>(kLinear, {}, Errc::load_failed), HasSubstr("no alternative fits"));
}

TEST(BadInput, InvalidPatterns) {
  EXPECT_THAT(refusal(kLinear, {.rename = {{"fc(1", ""}}}, Errc::invalid_argument), HasSubstr("\"fc(1\""));
  EXPECT_THAT(refusal(kLinear, {.rename = {{"fc1", "$1"}}}, Errc::invalid_argument), HasSubstr("$1"));
  EXPECT_THAT(refusal(kLinear, {.include = {"["}}, Errc::invalid_argument), HasSubstr("\"[\""));
  EXPECT_THAT(refusal(kLinear, {.exclude = {"*"}}, Errc::invalid_argument), HasSubstr("\"*\""));
  EXPECT_THAT(refusal(kLinear, {.rules = {rules::Drop{"(?<="}}}, Errc::invalid_argument), HasSubstr("(?<="));
  EXPECT_THAT(refusal(kLinear, {.keep_positions = {"("}}, Errc::invalid_argument), HasSubstr("\"(\""));
}

TEST(BadInput, CatastrophicPatterns) {
  // Linear time: these take other engines longer than the universe has.
  Checkpoint file;
  file.path = "long.pt";
  file.add(std::string(20000, 'a') + "!", counting({1}));
  nn::Linear model{2, 2};
  EXPECT_THROW(load(model, file, {.rename = {{"^(a+)+$", "x"}, {"(a|aa)*b", "y"}, {"(.*)*c", "z"}}}),
               LoadError);
  // Too large for memory is an error too.
  EXPECT_THAT(refusal(kLinear, {.rename = {{"((a{100}){100}){100}", ""}}}, Errc::invalid_argument),
              HasSubstr("a{100}"));
}

TEST(BadInput, TwoKeysOnOneName) {
  EXPECT_THAT(refusal(kLinear, {.rename = {{R"(fc\d)", "fc"}}}, Errc::duplicate_key),
              AllOf(HasSubstr("\"fc1.weight\""), HasSubstr("\"fc2.weight\"")));
}

TEST(BadInput, ACutFile) {
  const std::string path = BALLAST_TEST_OUTPUT "/bad_input_cut.safetensors";
  Checkpoint whole = open(kImportFiles + "autoencoder.safetensors");
  std::vector<std::byte> bytes = safetensors::serialize(whole);
  bytes.resize(bytes.size() - 9);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  refusal(path, {}, Errc::truncated);
}

TEST(BadInput, NoFilesAtAll) {
  TwoLinear model;
  EXPECT_THROW(load(model, std::vector<Checkpoint>{}), Error);
}

// Not errors, but what one looks at then.
TEST(Debug, TheReportHasEveryKeyBeforeAndAfter) {
  struct Model {
    nn::Conv2d conv1{2, 2, {2, 2}};
    nn::Conv2d conv2{2, 2, {2, 2}, {.bias = false}};
  } model;

  ::testing::internal::CaptureStderr();
  const LoadReport report =
      load(model, kTorchFiles + "import_key_remap.pt", {.rename = {{R"(^conv\.)", ""}}, .debug = true});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // a library does not print
  const char* const expected =
      "Debug information of keys and tensor shapes:\n---\n"
      "Original Key: conv.conv1.bias\nRemapped Key: conv1.bias\nShape: [2]\nDtype: F32\n---\n"
      "Original Key: conv.conv1.weight\nRemapped Key: conv1.weight\nShape: [2, 2, 2, 2]\nDtype: F32\n---\n"
      "Original Key: conv.conv2.weight\nRemapped Key: conv2.weight\nShape: [2, 2, 2, 2]\nDtype: F32\n---\n";
  EXPECT_EQ(report.debug_keys, expected);
  struct Larger {
    nn::Conv2d conv1{2, 2, {2, 2}};
    nn::Conv2d conv2{2, 2, {2, 2}, {.bias = false}};
    nn::Linear missing{2, 2};
  } larger;
  const LoadOptions options{.rename = {{R"(^conv\.)", ""}}, .debug = true};
  EXPECT_EQ(failed_load(larger, open(kTorchFiles + "import_key_remap.pt"), options).debug_keys, expected);
  EXPECT_EQ(load(model, kTorchFiles + "import_key_remap.pt", {.rename = {{R"(^conv\.)", ""}}}).debug_keys,
            "");
}

TEST(Hybrid, EachFileHasItsOwnRoot) {
  struct Model {
    Tensor weight;  // of import_config.pt, under "my_model"
    Tensor bias;
    nn::Linear fc1{2, 3};
  } model;

  const LoadReport report = load(
      model,
      std::vector<std::string>{kTorchFiles + "import_config.pt", kTorchFiles + "import_linear_with_bias.pt"},
      {.unused = OnUnused::error});
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(digest(model.weight), torch_digests("import_config.pt").at("my_model.weight"));
  EXPECT_EQ(digest(model.fc1.bias), torch_digests("import_linear_with_bias.pt").at("fc1.bias"));
  EXPECT_THAT(report.file, HasSubstr(" + "));
  // No key may be in two of them.
  try {
    load(model, std::vector<std::string>{kLinear, kTorchFiles + "import_linear_with_bias.pt"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::duplicate_key);
  }
}

}  // namespace
}  // namespace ballast
