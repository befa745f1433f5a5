// SPDX-License-Identifier: Apache-2.0
// What `ballast new` writes compiles, and loads the file it was made from with nothing missing and nothing
// unused.
#include <gmock/gmock.h>

#include "ballast/io.h"
#include "ballast/load.h"
#include "gpt2.h"
#include "model/model_keys.h"
#include "resnet50.h"
#include "vit_b_16.h"
#include "zoo.h"

namespace ballast {
namespace {

template <class Model>
void expect_fits(const Checkpoint& file) {
  Model model;
  const LoadReport report = load(model, file, {.missing = OnMissing::keep, .mismatched = OnMismatch::keep});
  EXPECT_TRUE(report.complete()) << report;
  EXPECT_FALSE(report.applied.empty());
  EXPECT_THAT(report.unused, ::testing::IsEmpty()) << report;
  EXPECT_THAT(report.reindexed, ::testing::IsEmpty());
}

TEST(ScaffoldCompiles, Resnet50) {
  expect_fits<resnet50_scaffold::Model>(testing_kit::keys_of(BALLAST_TEST_DATA, "resnet50"));
}

TEST(ScaffoldCompiles, VitB16) {
  expect_fits<vit_b_16_scaffold::Model>(testing_kit::keys_of(BALLAST_TEST_DATA, "vit_b_16"));
}

TEST(ScaffoldCompiles, Gpt2) {
  expect_fits<gpt2_scaffold::Model>(testing_kit::keys_of(BALLAST_TEST_DATA, "gpt2"));
}

TEST(ScaffoldCompiles, EveryKindOfLayerAndName) {
  expect_fits<zoo_scaffold::Model>(testing_kit::zoo_keys());
}

}  // namespace
}  // namespace ballast

#include "scaffold_files.inc"
