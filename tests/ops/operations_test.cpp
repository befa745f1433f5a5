// SPDX-License-Identifier: Apache-2.0
// The table of operations, row by row.
#include "ops/operations.h"

#include <gmock/gmock.h>

#include <set>

#include "ballast/error.h"
#include "ops/cases.h"
#include "tensor/trace.h"

namespace ballast::ops_tests {
namespace {

using Kind = Operation::Kind;

// Runs what is recorded, and remembers the rows.
class Seeing final : public tracing::Recorder {
 public:
  std::vector<Tensor> record(const Operation& operation, std::span<const Tensor> /*inputs*/,
                             Attributes attributes, const tracing::Run& run) override {
    const tracing::Aside aside;
    rows.insert(&operation);
    std::set<std::string> names;
    for (const Attribute& one : attributes) EXPECT_TRUE(names.insert(one.name).second) << operation.name;
    return run();
  }

  void enter(const std::string& /*path*/, const char* /*layer*/) override {}

  void leave() noexcept override {}

  std::set<const Operation*> rows;
};

TEST(Operations, HaveANameOfTheirOwnAndARuleForTheFormOfWhatDependsOnInputs) {
  std::set<std::string> names;
  for (const Operation* row : operations::table()) {
    EXPECT_TRUE(names.insert(row->name).second) << row->name;
    // A view costs nothing; what has no operands depends on no input and is computed.
    const bool needs_none = row->kind == Kind::views || row->inputs[0] == nullptr;
    EXPECT_TRUE(row->form != nullptr || needs_none) << row->name;
    EXPECT_EQ(std::string(row->domain) + (row->to_onnx != nullptr ? "rule" : ""), "") << row->name;
  }
}

// That they compute what torch does is what torch_test.cpp and reference_test.cpp see; here, that the kernels
// are reached through the rows, and that no row is without a case.
TEST(Operations, AreEachCalledByACaseThroughTheTable) {
  const Checkpoint bundle = safetensors::open(bundle_path());
  Seeing seeing;
  for (const auto& [name, call] : operations()) {
    std::vector<Case> cases = cases_of(bundle, name);
    for (const Case& one : cases) {
      tracing::recorder = &seeing;
      static_cast<void>(call(one.inputs, one.args));
      tracing::recorder = nullptr;
    }
  }
  std::set<const Operation*> known(operations::table().begin(), operations::table().end());
  for (const Operation* row : seeing.rows) EXPECT_TRUE(known.contains(row)) << row->name << " is not listed";
  for (const Operation* row : known)
    EXPECT_TRUE(seeing.rows.contains(row) || row->kind != Kind::computes) << row->name << " has no case";
}

TEST(Operations, RefuseDevicesTheyHaveNoKernelForAndOperandsOnTwo) {
  float memory[4] = {};
  const auto on = [&](int index) {
    return Tensor::contiguous_view(DType::f32, {2, 2},
                                   Storage::borrow(memory, sizeof(memory), {}, {DeviceType::cuda, index}));
  };
  const auto message = [](const auto& work) -> std::string {
    try {
      static_cast<void>(work());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported);
      return error.what();
    }
    return "nothing was refused";
  };
  using testing::HasSubstr;
  const Tensor here = Tensor::zeros(DType::f32, {2, 2});
  EXPECT_THAT(message([&] { return relu(on(0)); }), HasSubstr("relu: has no kernel for cuda:0"));
  EXPECT_THAT(message([&] { return on(0) * 2.0; }), HasSubstr("mul: has no kernel for cuda:0"));
  EXPECT_THAT(message([&] { return add(2, on(1)); }), HasSubstr("add: has no kernel for cuda:1"));
  EXPECT_THAT(message([&] { return matmul(here, on(0)); }),
              HasSubstr("matmul: one operand is on the CPU, another on cuda:0"));
  EXPECT_THAT(message([&] {
                return concat({on(0), on(1)}, 0);
              }),
              HasSubstr("concat: one operand is on cuda:0, another on cuda:1"));
}

}  // namespace
}  // namespace ballast::ops_tests
