// SPDX-License-Identifier: Apache-2.0
// Every operation against torch's results, on whatever cases make_cases.py wrote.
#include <gtest/gtest.h>

#include "ops/cases.h"

namespace ballast::ops_tests {
namespace {

std::string shapes_of(const Tensors& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) {
    text += tensor.defined() ? std::string(info(tensor.dtype()).code) + ' ' + to_string(tensor.shape()) +
                                   " strides " + to_string(tensor.strides()) + "; "
                             : "none; ";
  }
  return text;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous();
  return a.numel() == 0 || error_of(x, b) == 0;
}

class Operation : public testing::TestWithParam<std::string> {};

void expect_torchs_result(const std::string& operation, const Case& one) {
  Tensors got;
  ASSERT_NO_THROW(got = operations().at(operation)(one.inputs, one.args));
  ASSERT_EQ(got.size(), one.expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape(), one.expected[k].shape());
    ASSERT_EQ(got[k].dtype(), one.expected[k].dtype());
    if (one.exact)
      ASSERT_TRUE(same_bytes(got[k], one.expected[k]));
    else
      ASSERT_LE(error_of(got[k], one.expected[k]), tolerance(got[k].dtype()));
  }
}

TEST_P(Operation, EqualsTorch) {
  const Checkpoint bundle = safetensors::open(bundle_path());
  const std::vector<Case> cases = cases_of(bundle, GetParam());
  ASSERT_FALSE(cases.empty()) << "no cases for it in " << bundle_path();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    SCOPED_TRACE("case " + std::to_string(i) + " " + one.args.dump() + " " + shapes_of(one.inputs));
    ASSERT_NO_FATAL_FAILURE(expect_torchs_result(GetParam(), one));
  }
}

// A file may have its tensors at any byte.
TEST_P(Operation, EqualsTorchAtEveryByteOffset) {
  const Checkpoint bundle = safetensors::open(bundle_path());
  const std::vector<Case> cases = cases_of(bundle, GetParam());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const std::size_t offset : offsets_for(i, cases.size())) {
      const Case one = at_offset(cases[i], offset);
      SCOPED_TRACE("offset " + std::to_string(offset) + " case " + std::to_string(i) + " " + one.args.dump() +
                   " " + shapes_of(one.inputs));
      ASSERT_NO_FATAL_FAILURE(expect_torchs_result(GetParam(), one));
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, run] : operations()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Operation, testing::ValuesIn(names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace ballast::ops_tests
