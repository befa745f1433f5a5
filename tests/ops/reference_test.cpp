// SPDX-License-Identifier: Apache-2.0
// Every operation against the plain loops of reference.h, on the inputs of the same cases.
#include "ops/reference.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ballast::ops_tests {
namespace {

const References& references() {
  static const References all = [] {
    References joined = reference_elementwise();
    joined.merge(reference_reductions());
    joined.merge(reference_movement());
    joined.merge(reference_layers());
    joined.merge(reference_norms());
    joined.merge(reference_recurrent());
    joined.merge(reference_more());
    joined.merge(reference_signals());
    joined.merge(reference_losses());
    joined.merge(reference_boxes());
    return joined;
  }();
  return all;
}

// The reference's numbers in the dtype of the result; integers go round as their arithmetic does.
Tensor rounded(const Array& array, DType dtype) {
  std::vector<double> values = array.values;
  const DTypeInfo& about = info(dtype);
  if (about.kind == DTypeKind::signed_integer || about.kind == DTypeKind::unsigned_integer) {
    const double range = std::ldexp(1.0, about.bits);
    for (double& v : values) {
      if (about.bits == 64) continue;
      v = std::fmod(v, range);
      if (v < 0) v += range;
      if (about.kind == DTypeKind::signed_integer && v >= range / 2) v -= range;
    }
  }
  return Tensor::from(std::span<const double>(values), Shape(array.shape)).to(dtype);
}

class OperationByLoops : public testing::TestWithParam<std::string> {};

TEST_P(OperationByLoops, EqualsPlainLoops) {
  const Checkpoint bundle = safetensors::open(bundle_path());
  const std::vector<Case> cases = cases_of(bundle, GetParam());
  ASSERT_TRUE(references().contains(GetParam())) << "an operation without a reference";
  for (std::size_t i = 0; i < std::min<std::size_t>(cases.size(), 25); ++i) {
    const Case& one = cases[i];
    SCOPED_TRACE("case " + std::to_string(i) + " " + one.args.dump());
    Arrays inputs;
    for (const Tensor& input : one.inputs) inputs.push_back(array_of(input));
    const Arrays expected = references().at(GetParam())(inputs, one.args);
    const Tensors got = operations().at(GetParam())(one.inputs, one.args);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      ASSERT_EQ(got[k].shape(), Shape(expected[k].shape));
      ASSERT_LE(error_of(got[k], rounded(expected[k], got[k].dtype())),
                one.exact ? 0 : tolerance(got[k].dtype()));
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, run] : operations()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, OperationByLoops, testing::ValuesIn(names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace ballast::ops_tests
