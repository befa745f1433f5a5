// SPDX-License-Identifier: Apache-2.0
// Weights out of an ONNX file, into a struct that runs: the numbers torch computed with the net it exported.
#include <gtest/gtest.h>

#include "ballast/load_file.h"
#include "ballast/nn.h"
#include "ballast/onnx_file.h"
#include "ballast/ops.h"
#include "checkpoint/value_json.h"

namespace ballast {
namespace {

struct Net {
  nn::Conv2d conv{2, 3, 3, {.padding = 1}};
  nn::BatchNorm2d norm{3};
  nn::Linear fc{3, 4};

  [[nodiscard]] Tensor forward(const Tensor& image) const {
    return fc.forward(mean(relu(norm.forward(conv.forward(image))), {2, 3}));
  }
};

std::string fixture(const std::string& name) {
  return std::string(BALLAST_TEST_DATA) + "/fixtures/onnx/" + name;
}

TEST(OnnxLoad, AStructLoadedFromAnExportComputesWhatTorchDoes) {
  const Value logits = read_json(fixture("expect.json")).at("logits");
  for (const std::string file : {"files/torch.onnx", "files/torch_old.onnx"}) {
    Net net;
    const LoadReport report = load(net, fixture(file));
    EXPECT_EQ(report.applied.size(), 8U) << report;
    const Tensor result = net.forward(ones({1, 2, 5, 5})).contiguous();
    ASSERT_EQ(result.numel(), 4);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(result.span<float>()[i], logits.at(std::to_string(i)).as_float(), 1e-4) << file << ' ' << i;
  }
}

TEST(OnnxLoad, InfoTellsInputsAndOutputs) {
  const onnx_file::Info info = onnx_file::read_info(fixture("files/torch.onnx"));
  ASSERT_EQ(info.inputs.size(), 1U);
  EXPECT_EQ(info.inputs[0].name, "image");
  EXPECT_EQ(info.inputs[0].type, "F32");
  ASSERT_TRUE(info.inputs[0].shape);
  ASSERT_EQ(info.inputs[0].shape->size(), 4U);
  EXPECT_EQ((*info.inputs[0].shape)[0].symbol, "batch");
  EXPECT_EQ((*info.inputs[0].shape)[1].size, 2);
  EXPECT_EQ(info.opsets[0].version, 13);
}

}  // namespace
}  // namespace ballast
