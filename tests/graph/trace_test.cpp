// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>
#include <future>
#include <sstream>

#include "ballast/graph.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Plain {
  BALLAST_FIELDS();
};

struct Mlp {
  nn::Linear first{4, 6};
  nn::Linear second{6, 2};

  Tensor forward(const Tensor& x) const { return second.forward(first.forward(x, Activation::Kind::relu)); }
};

std::string text(const Graph& graph) {
  std::ostringstream out;
  print(graph, out);
  return out.str();
}

std::vector<std::string> operations(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes) names.emplace_back(node.operation->name);
  return names;
}

Graph traced(const std::vector<InputSpec>& inputs, const std::function<Tensor(const Tensor&)>& work) {
  return trace(Plain{}, inputs, [&](std::span<const Tensor> in) { return std::vector<Tensor>{work(in[0])}; });
}

const std::vector<InputSpec> kBySeq = {{"x", {"batch", "seq", 4}}};

TEST(Trace, RecordsTheOperationsOfALayerWithItsParametersByPath) {
  Mlp model;
  init(model);
  const Graph graph = trace(model, {{"x", {"batch", 4}}});
  EXPECT_THAT(operations(graph), ElementsAre("linear", "relu", "linear"));
  EXPECT_EQ(text(graph),
            "input x : F32 [batch, 4]\n"
            "%3 = linear(x, first.weight, first.bias) : F32 [batch, 6]  # first (Linear)\n"
            "%4 = relu(%3) : F32 [batch, 6]  # first (Linear)\n"
            "%7 = linear(%4, second.weight, second.bias) : F32 [batch, 2]  # second (Linear)\n"
            "output %7\n");
}

TEST(Trace, LeavesTheModelAndTheThreadAsTheyWere) {
  Mlp model;
  init(model);
  const Tensor x = ones({1, 4});
  const Tensor before = model.forward(x);
  static_cast<void>(trace(model, {{"x", {"batch", 4}}}));
  EXPECT_TRUE(all(eq(model.forward(x), before)).item() == 1);
}

TEST(Trace, SaysWhereAValueIsReadThatDependsOnTheInput) {
  struct Reads {
    nn::Linear gate{4, 1};
    Tensor forward(const Tensor& x) const {
      const Tensor open = gate.forward(x);
      return sum(open).item() > 0 ? x : neg(x);
    }
  } model;
  init(model);
  const Error error = error_of([&] { static_cast<void>(trace(model, {{"x", {2, 4}}})); });
  EXPECT_EQ(error.code(), Errc::traced_value);
  EXPECT_THAT(error.what(), HasSubstr("sum"));
  const Error layer = error_of([&] {
    static_cast<void>(trace(model, {{"x", {2, 4}}}, [&](std::span<const Tensor> in) {
      return std::vector<Tensor>{in[0] * static_cast<double>(model.gate.forward(in[0]).span<float>()[0])};
    }));
  });
  EXPECT_EQ(layer.code(), Errc::traced_value);
  EXPECT_THAT(layer.what(), HasSubstr("gate (Linear): linear"));
}

TEST(Trace, LetsValuesBeReadThatFollowFromConstants) {
  const Graph graph = traced({{"x", {3}}}, [](const Tensor& x) {
    const Tensor known = arange(0, 3).to(DType::f32) * 2;
    return x + static_cast<double>(known.span<float>()[2]);
  });
  EXPECT_THAT(operations(graph), ElementsAre("add"));
}

TEST(Trace, TakesWhatTheHostWroteIntoATensorForAConstant) {
  const Graph graph = traced({{"x", {3}}}, [](const Tensor& x) {
    Tensor mask = zeros({3});
    const Tensor before = x + mask;
    mask.mutable_span<float>()[1] = 7;
    return before * mask;
  });
  ASSERT_THAT(operations(graph), ElementsAre("full", "add", "mul"));
  const GraphValue& mask = graph.values[static_cast<std::size_t>(graph.nodes[2].inputs[1])];
  ASSERT_EQ(mask.kind, GraphValue::Kind::constant);
  EXPECT_THAT(mask.tensor.span<float>(), ElementsAre(0, 7, 0));
  // What was recorded before the write keeps its value.
  const GraphValue& zero = graph.values[static_cast<std::size_t>(graph.nodes[1].inputs[1])];
  EXPECT_THAT(zero.tensor.span<float>(), ElementsAre(0, 0, 0));
}

TEST(Trace, SeesAConstantAgainAfterTheHostChangedIt) {
  Tensor scratch = Tensor::from({1.0F, 2.0F}, {2});
  const Graph graph = traced({{"x", {2}}}, [&](const Tensor& x) {
    scratch.mutable_span<float>()[0] = 1;
    const Tensor once = x + scratch;
    scratch.mutable_span<float>()[0] = 5;
    return once + scratch;
  });
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_NE(graph.nodes[0].inputs[1], graph.nodes[1].inputs[1]);
}

TEST(Trace, LeavesOutWhatNoResultNeeds) {
  const Graph graph = traced({{"x", {3}}}, [](const Tensor& x) {
    static_cast<void>(exp(x));
    return neg(x);
  });
  EXPECT_THAT(operations(graph), ElementsAre("neg"));
}

TEST(Trace, FollowsSizesThroughReshapes) {
  const Graph graph = traced(kBySeq, [](const Tensor& x) {
    const std::int64_t batch = x.shape()[0];
    const std::int64_t seq = x.shape()[1];
    return x.reshape({batch * seq, 4}).reshape({batch, 2 * seq, 2}) + arange(0, 2 * seq).unsqueeze(1);
  });
  EXPECT_THAT(text(graph),
              AllOf(HasSubstr("reshape(x) shape=[batch*seq, 4]"), HasSubstr("shape=[batch, 2*seq, 2]"),
                    HasSubstr("arange() start=0 stop=2*seq step=1 : I64 [2*seq]")));
}

TEST(Trace, NamesADimensionThatTheModelsOwnCodeFixes) {
  const Error error = error_of([] {
    static_cast<void>(traced(kBySeq, [](const Tensor& x) {
      Tensor mask = Tensor::zeros(DType::f32, {x.shape()[1], 1});
      return x + mask;
    }));
  });
  EXPECT_EQ(error.code(), Errc::baked_dimension);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("add"), HasSubstr(R"("seq" is baked in)")));
}

TEST(Trace, NamesANumberThatNoExpressionOfSizesExplains) {
  const Error error = error_of([] {
    static_cast<void>(
        traced(kBySeq, [](const Tensor& x) { return x * (1.0 / static_cast<double>(x.shape()[0])); }));
  });
  EXPECT_EQ(error.code(), Errc::baked_dimension);
  EXPECT_THAT(error.what(), HasSubstr(R"("batch" is baked in)"));
}

TEST(Trace, NamesControlFlowThatASizeDecides) {
  const Error error = error_of([] {
    static_cast<void>(
        traced(kBySeq, [](const Tensor& x) { return x.shape()[1] % 2 == 0 ? neg(x) : exp(x); }));
  });
  EXPECT_EQ(error.code(), Errc::baked_dimension);
  EXPECT_THAT(error.what(), HasSubstr(R"("seq" is baked in)"));
}

TEST(Trace, NamesADimensionTheModelTakesOneSizeOf) {
  Mlp model;
  init(model);
  const Error error = error_of([&] { static_cast<void>(trace(model, {{"x", {2, "features"}}})); });
  EXPECT_EQ(error.code(), Errc::baked_dimension);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("first (Linear): linear"), HasSubstr(R"("features")")));
}

TEST(Trace, FindsSizesThatAModelDivides) {
  const auto halves = [](const Tensor& x) {
    const Tensor small = max_pool(max_pool(x, {2, 2}), {2, 2});
    return resize(small, {.scale = {4}}) + x;
  };
  const Graph graph = traced({{"x", {1, 2, "height", "width"}}}, halves);
  EXPECT_THAT(text(graph), HasSubstr("F32 [1, 2, height, width]"));
}

TEST(Trace, RefusesModelsWithoutWeights) {
  const Mlp model;
  const Error error = error_of([&] { static_cast<void>(trace(model, {{"x", {1, 4}}})); });
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("weights loaded"));
}

TEST(Trace, RefusesInputsThatMakeNoSense) {
  Mlp model;
  init(model);
  const auto code = [&](const std::vector<InputSpec>& inputs) {
    return error_of([&] { static_cast<void>(trace(model, inputs)); }).code();
  };
  EXPECT_EQ(code({}), Errc::invalid_argument);
  EXPECT_EQ(code({{"", {1, 4}}}), Errc::bad_name);
  EXPECT_EQ(code({{"x", {0, 4}}}), Errc::invalid_argument);
  EXPECT_EQ(code({{"x", {1, 4}}, {"x", {1, 4}}}), Errc::duplicate_key);
  EXPECT_EQ(code({{"x", {1, 4}}, {"y", {1, 4}}}), Errc::invalid_argument);
  EXPECT_EQ(code({{"x", {1, 2, 3}}}), Errc::shape_mismatch);
}

Tensor twice_cpu(const Operation&, const Tensor& x) {
  Tensor out = x.clone();
  for (float& value : out.mutable_span<float>()) value *= 2;
  return out;
}

const OperationOf<Tensor(const Tensor&)> kTwice = {
    {.name = "Twice", .inputs = {"x"}, .domain = "com.example"}, {twice_cpu}};

TEST(Trace, TakesAnOperationOfTheUsersForOneWhateverItsKernelDoes) {
  EXPECT_THAT(run(kTwice, Tensor::from({1.0F, 2.0F}, {2})).span<float>(), ElementsAre(2, 4));
  const Graph graph = traced({{"x", {"n", 2}}}, [&](const Tensor& x) { return neg(run(kTwice, x)); });
  EXPECT_THAT(text(graph), HasSubstr("%1 = com.example.Twice(x) : F32 [n, 2]"));
}

std::array<Tensor, 2> halves_cpu(const Operation&, const Tensor& x) {
  return {x.narrow(0, 0, 1), x.narrow(0, 1, 1)};
}

const OperationOf<std::array<Tensor, 2>(const Tensor&)> kHalves = {
    {.name = "Halves",
     .inputs = {"x"},
     .form = [](const OperationCall& call) -> std::optional<std::vector<Tensor>> {
       return std::vector<Tensor>{{call.dtype(0), Shape{1}}};
     },
     .domain = "com.example"},
    {halves_cpu}};

TEST(Trace, RefusesARuleThatTellsOfMoreOrFewerResultsThanTheKernelMakes) {
  const Error error = error_of([] {
    static_cast<void>(traced({{"x", {2}}}, [](const Tensor& x) { return run(kHalves, x)[0]; }));
  });
  EXPECT_EQ(error.code(), Errc::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("Halves: its rule tells the form of 1 results, its kernel makes 2"));
}

TEST(Trace, RefusesToReadATracedTensorWhenTheTraceIsOver) {
  Tensor kept;
  static_cast<void>(traced({{"x", {2}}}, [&](const Tensor& x) { return kept = neg(x); }));
  EXPECT_EQ(error_of([&] { static_cast<void>(kept.item()); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { static_cast<void>(kept.data()); }).code(), Errc::traced_value);
  EXPECT_EQ(error_of([&] { static_cast<void>(kept + 1); }).code(), Errc::traced_value);
}

TEST(Trace, RefusesAModelThatComputesInAnotherThread) {
  const Error error = error_of([] {
    static_cast<void>(traced({{"x", {4}}}, [](const Tensor& x) {
      return std::async(std::launch::async, [&] { return exp(x); }).get();
    }));
  });
  EXPECT_EQ(error.code(), Errc::traced_value);
}

TEST(Trace, RefusesViewsMadeAroundItsBack) {
  const Error error = error_of([] {
    static_cast<void>(
        traced({{"x", {4}}}, [](const Tensor& x) { return neg(Tensor(x.dtype(), {2}, {2}, x.storage())); }));
  });
  EXPECT_EQ(error.code(), Errc::traced_value);
}

}  // namespace
}  // namespace ballast
