// SPDX-License-Identifier: Apache-2.0
// Every layer against torch's results, on whatever cases make_cases.py wrote.
#include <gtest/gtest.h>

#include "nn/layers.h"

namespace ballast::nn_tests {
namespace {

// Layers of several operations round F16 after each of them; torch's results here were rounded once.
double tolerance(const std::string& layer, DType dtype) {
  const bool several = layer.starts_with("Transformer") || layer == "MultiheadAttention";
  return ops_tests::tolerance(dtype) * (several && dtype == DType::f16 ? 10 : 1);
}

class Layer : public testing::TestWithParam<std::string> {};

void expect_torchs_result(const std::string& layer, const Case& one) {
  Tensors got;
  ASSERT_NO_THROW(got = layers().at(layer)(one));
  ASSERT_EQ(got.size(), one.expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape(), one.expected[k].shape());
    ASSERT_EQ(got[k].dtype(), one.expected[k].dtype());
    ASSERT_LE(ops_tests::error_of(got[k], one.expected[k]), tolerance(layer, got[k].dtype()));
  }
}

TEST_P(Layer, EqualsTorch) {
  const Checkpoint bundle = safetensors::open(ops_tests::bundle_path("nn"));
  const std::vector<Case> cases = ops_tests::cases_of(bundle, GetParam());
  ASSERT_FALSE(cases.empty());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i) + " " + cases[i].args.dump());
    ASSERT_NO_FATAL_FAILURE(expect_torchs_result(GetParam(), cases[i]));
  }
}

// A file may have its tensors at any byte.
TEST_P(Layer, EqualsTorchAtEveryByteOffset) {
  const Checkpoint bundle = safetensors::open(ops_tests::bundle_path("nn"));
  const std::vector<Case> cases = ops_tests::cases_of(bundle, GetParam());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const std::size_t offset : ops_tests::offsets_for(i, cases.size())) {
      SCOPED_TRACE("offset " + std::to_string(offset) + " case " + std::to_string(i) + " " +
                   cases[i].args.dump());
      ASSERT_NO_FATAL_FAILURE(expect_torchs_result(GetParam(), ops_tests::at_offset(cases[i], offset)));
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, run] : layers()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Layer, testing::ValuesIn(names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace ballast::nn_tests
