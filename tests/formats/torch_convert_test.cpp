// SPDX-License-Identifier: Apache-2.0
// From one PyTorch file to another with steps in between: what is written is what the steps left.
#include <gtest/gtest.h>

#include "ballast/io.h"
#include "ballast/steps.h"

namespace ballast {
namespace {

const std::string kInput = std::string(BALLAST_TEST_DATA) + "/../examples/data/net.pt";

Checkpoint through_a_file(const Checkpoint& checkpoint, const std::string& name) {
  const std::string path = std::string(BALLAST_TEST_OUTPUT) + "/" + name;
  save(checkpoint, path, {.overwrite = true});
  return open(path);
}

TEST(TorchConvert, WithoutStepsTheWholeTreeIsWritten) {
  const Checkpoint copy = through_a_file(open(kInput), "whole.pt");
  EXPECT_EQ(copy.value("epoch").as_int(), 3);
  EXPECT_TRUE(copy.contains("state_dict.4.bias"));
}

TEST(TorchConvert, RenamedTensorsKeepTheirNewNames) {
  const Checkpoint copy =
      through_a_file(rename(open(kInput), {{"^state_dict\\.4\\.", "head."}}).checkpoint, "renamed.pt");
  EXPECT_TRUE(copy.contains("head.bias"));
  EXPECT_FALSE(copy.contains("state_dict.4.bias"));
}

TEST(TorchConvert, TensorsThatWereLeftOutStayOut) {
  const Checkpoint copy = through_a_file(filter(open(kInput), {"bias$"}), "filtered.pt");
  EXPECT_EQ(copy.size(), 3U);
  EXPECT_FALSE(copy.contains("state_dict.4.weight"));
}

TEST(TorchConvert, CastTensorsAreWrittenCast) {
  const Checkpoint copy = through_a_file(cast(open(kInput), Precision::half), "cast.pt");
  EXPECT_EQ(copy.at("state_dict.4.bias").dtype, DType::f16);
}

TEST(TorchConvert, ThePartThatWasTakenIsAllThatIsWritten) {
  const Checkpoint copy = through_a_file(root(open(kInput), "state_dict"), "part.pt");
  EXPECT_EQ(copy[0].name, "0.weight");
  EXPECT_EQ(copy.size(), 9U);
}

}  // namespace
}  // namespace ballast
