// SPDX-License-Identifier: Apache-2.0
// An exported model is nothing but an ONNX file, whatever its weights are.
#include <gmock/gmock.h>

#include <cstring>

#include "ballast/io.h"
#include "ballast/onnx.h"
#include "ballast/ops.h"
#include "base/error_of.h"
#include "base/scratch.h"

namespace ballast {
namespace {

struct OnnxReading : Scratch {};

struct Plain {
  Tensor weight;

  Tensor forward(const Tensor& x) const { return x + weight; }
};

TEST_F(OnnxReading, WeightsThatAreAZipArchiveAreRefusedInTheModelAndBesideIt) {
  Checkpoint one;
  one.add("a", Tensor::from<float>({1, 2, 3, 4}, {4}));
  save(one, path("payload.npz"));
  std::string bytes = content(path("payload.npz"));
  bytes.insert(0, (4 - bytes.size() % 4) % 4, 'x');
  Plain plain;
  plain.weight =
      Tensor::from(std::vector<float>(bytes.size() / 4), {static_cast<std::int64_t>(bytes.size() / 4)});
  std::memcpy(plain.weight.mutable_data(), bytes.data(), bytes.size());
  for (const auto external : {onnx::External::when_needed, onnx::External::always}) {
    EXPECT_EQ(code_of([&] {
                onnx::save(plain, path("m.onnx"),
                           {.inputs = {{"x", {plain.weight.shape()[0]}}}, .external_data = external});
              }),
              Errc::not_representable);
  }
  EXPECT_THAT(names(), testing::ElementsAre("payload.npz"));
}

}  // namespace
}  // namespace ballast
