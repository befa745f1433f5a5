// SPDX-License-Identifier: Apache-2.0
// The models of examples/models against the keys and shapes PyTorch has for them. The files themselves are
// too large for a repository: with BALLAST_MODEL_WEIGHTS=folder (tests/fixtures/models/make.py --weights
// folder, or --hollow folder, as ctest's models.Load does where PyTorch is) they are loaded too.
#include <cstdlib>
#include <filesystem>

#include "../../examples/models/gpt2.h"
#include "../../examples/models/resnet.h"
#include "../../examples/models/vit_b_16.h"
#include "ballast/io.h"
#include "ballast/load_file.h"
#include "model/model_keys.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using testing_kit::keys_of;
const std::string kTests = BALLAST_TEST_DATA;

template <class Model>
void expect_complete(const std::string& name, LoadOptions options, std::size_t tensors) {
  options.unused = OnUnused::error;
  Model model;
  const LoadReport report = load(model, keys_of(kTests, name), options);
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.applied, SizeIs(tensors));
  EXPECT_THAT(report.reindexed, IsEmpty());
  const char* const folder = std::getenv("BALLAST_MODEL_WEIGHTS");
  for (const char* extension : {".pt", ".safetensors"}) {
    const std::string path = std::string(folder != nullptr ? folder : "") + "/" + name + extension;
    if (folder == nullptr || !std::filesystem::exists(path)) continue;
    Model real;
    // Files without weights are views of a single number.
    const LoadReport loaded = load(real, open(path, {.expansion = 1e9}), options);
    EXPECT_TRUE(loaded.complete());
    EXPECT_THAT(loaded.applied, SizeIs(tensors));
  }
}

TEST(Examples, Resnet50IsComplete) {
  expect_complete<models::ResNet50>("resnet50", {}, 320);
}

TEST(Examples, VitB16IsComplete) {
  expect_complete<models::VitB16>("vit_b_16", models::VitB16::load_options(), 200);
}

TEST(Examples, Gpt2IsComplete) {
  expect_complete<models::Gpt2>("gpt2", models::Gpt2::load_options(true), 149);
}

TEST(Examples, Gpt2WithoutLmHeadIsTied) {
  const Checkpoint file = filter(keys_of(kTests, "gpt2"), {}, {"^lm_head"});
  models::Gpt2 model;
  LoadOptions options = models::Gpt2::load_options(false);
  options.unused = OnUnused::error;
  EXPECT_TRUE(load(model, file, options).complete());
}

}  // namespace
}  // namespace ballast
