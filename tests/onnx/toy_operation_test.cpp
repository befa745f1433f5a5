// SPDX-License-Identifier: Apache-2.0
#include "onnx/toy_operation.h"

#include <gmock/gmock.h>

#include <sstream>

#include "ballast/ops.h"
#include "base/scratch.h"
#include "onnx/python.h"

namespace ballast {
namespace {

using onnx_tests::look;
using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;

struct NoParameters {
  BALLAST_FIELDS();
};

const std::vector<InputSpec> kInput = {{"x", {"n", 3}}};

using ToyOperation = Scratch;

TEST_F(ToyOperation, ComputesLikeThoseOfBallast) {
  // math: 1 + sin(0.5)^2 / 0.5 and -2 + sin(-1)^2 / 0.5
  EXPECT_THAT(run(toy::kSnake, Tensor::from({1.0F, -2.0F}, {2}), 0.5).span<float>(),
              ElementsAre(FloatNear(1.459698F, 1e-5F), FloatNear(-0.583853F, 1e-5F)));
}

TEST_F(ToyOperation, IsOneNodeOfATraceThatAsksItsRuleAndNotItsKernel) {
  const int before = toy::kernel_calls;
  const Graph graph = trace(NoParameters{}, kInput, [](std::span<const Tensor> in) {
    return std::vector<Tensor>{relu(run(toy::kSnake, in[0], 0.5))};
  });
  std::ostringstream text;
  text << graph;
  EXPECT_THAT(text.str(), HasSubstr("%1 = com.example.Snake(x) alpha=0.5 : F32 [n, 3]"));
  EXPECT_EQ(graph.nodes[0].operation, &toy::kSnake);
  EXPECT_EQ(toy::kernel_calls, before);
}

TEST_F(ToyOperation, IsExportedAsANodeOfItsDomainOrInPieces) {
  const auto save_as = [&](const toy::Snake& snake, const char* name) {
    onnx::save(NoParameters{}, path(name), {.inputs = kInput, .outputs = {"y"}},
               [&](std::span<const Tensor> in) { return std::vector<Tensor>{run(snake, in[0], 0.5)}; });
    return look(path(name));
  };
  static toy::Snake third = toy::kSnake;
  third.version = 3;
  third.form = nullptr;  // so that the trace runs the kernel
  EXPECT_THAT(save_as(third, "node.onnx"),
              AllOf(HasSubstr("domain com.example 3"), HasSubstr("node com.example.Snake alpha=0.5")));
  EXPECT_THAT(save_as(toy::kSnakeInPieces, "pieces.onnx"),
              AllOf(HasSubstr("node Sin"), HasSubstr("node Div"), Not(HasSubstr("com.example"))));
}

TEST_F(ToyOperation, IsNotWrittenWhenOnnxsCheckerRefusesItsTranslation) {
  static toy::Snake wrong = toy::kSnake;
  wrong.to_onnx = [](onnx::Builder& to, std::span<const std::string> inputs, const Attributes&) {
    return std::vector<std::string>{to.node("Concat", {inputs[0]})};  // which needs an axis
  };
  EXPECT_EQ(code_of([&] {
              onnx::save(
                  NoParameters{}, path("bad.onnx"), {.inputs = kInput},
                  [&](std::span<const Tensor> in) { return std::vector<Tensor>{run(wrong, in[0], 0.5)}; });
            }),
            Errc::onnx_invalid);
  EXPECT_THAT(names(), testing::IsEmpty());
}

// A number that follows from a named dimension must not become the one that was traced.
TEST_F(ToyOperation, IsNotExportedWithASizeAsAnAttribute) {
  using Times = OperationOf<Tensor(const Tensor&, std::int64_t)>;
  const auto cpu = [](const Operation&, const Tensor& x, std::int64_t n) { return mul(x, n); };
  const auto pieces = [](onnx::Builder& to, std::span<const std::string> inputs,
                         const Attributes& attributes) {
    const auto n = static_cast<float>(std::get<std::int64_t>(attributes[0].value));
    return std::vector<std::string>{to.node("Mul", {inputs[0], to.constant(Tensor::from({n}, {}))})};
  };
  for (const OnnxRule rule : {OnnxRule{nullptr}, OnnxRule{pieces}}) {
    static Times times[2];
    Times& row = times[rule == nullptr ? 0 : 1];
    row = {{.name = "Times",
            .inputs = {"x"},
            .attributes = {"n"},
            .form = toy::snake_form,
            .domain = "com.example",
            .to_onnx = rule},
           {cpu}};
    const auto save = [&](std::int64_t dim) {
      onnx::save(
          NoParameters{}, path("times.onnx"), {.inputs = kInput, .outputs = {"y"}, .overwrite = true},
          [&](std::span<const Tensor> in) { return std::vector<Tensor>{run(row, in[0], in[0].size(dim))}; });
    };
    save(1);  // 3, whatever n is
    EXPECT_THAT(error_text([&] { save(0); }),
                AllOf(HasSubstr("not-exportable"), HasSubstr("n follows from")));
  }
}

TEST_F(ToyOperation, RefusesOperandsThatAreMissingOrOnADeviceItHasNoKernelFor) {
  const auto refused = [](const Tensor& x) {
    const Error error = error_of([&] { static_cast<void>(run(toy::kSnake, x, 0.5)); });
    return std::string(error.what());
  };
  EXPECT_THAT(refused({}), HasSubstr("Snake: operand 0, x, is an undefined tensor"));
  float memory[3] = {};
  const auto far = Storage::borrow(memory, sizeof(memory), {}, {DeviceType::cuda, 1});
  EXPECT_THAT(refused(Tensor::contiguous_view(DType::f32, {3}, far)),
              HasSubstr("Snake: has no kernel for cuda:1"));
}

}  // namespace
}  // namespace ballast
