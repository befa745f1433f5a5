// SPDX-License-Identifier: Apache-2.0
// A file whose tensors show far more bytes than it holds is refused, in whatever way it does that.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "ballast/io.h"
#include "base/error_of.h"
#include "base/scratch.h"
#include "formats/onnx_wire.h"
#include "formats/open.h"

namespace ballast {
namespace {

using Expansion = Scratch;

constexpr std::int64_t kBytes = 1 << 20;

// 64 MiB and 16 MiB may be shown by a file of 1 MiB.
Checkpoint under_names(int names) {
  Checkpoint checkpoint;
  const Tensor one = Tensor::zeros(DType::u8, {kBytes});
  for (int i = 0; i < names; ++i) checkpoint.add("w" + std::to_string(i), one);
  return checkpoint;
}

TEST_F(Expansion, OneTensorUnderManyNamesIsRefusedInEveryFormatThatHoldsTies) {
  int formats = 0;
  for (const Format format : writable_formats()) {
    if (!format->holds_ties) continue;
    SCOPED_TRACE(format.name());
    ++formats;
    const auto size_of = [&](int names, double expansion) {
      const std::string file = path("f" + std::to_string(names));
      save(under_names(names), file, {.format = format, .overwrite = true});
      return open(file, {.expansion = expansion}).size();
    };
    EXPECT_EQ(size_of(80, kExpansion), 80U);
    EXPECT_EQ(code_of([&] { size_of(90, kExpansion); }), Errc::expanded_view);
    EXPECT_EQ(size_of(90, 100), 90U);
  }
  EXPECT_GE(formats, 3);
}

TEST_F(Expansion, IsZeroOrMore) {
  const std::string file = path("w.safetensors");
  save(under_names(1), file);
  for (const double expansion : {-1.0, -1e-300, -std::numeric_limits<double>::infinity(), std::nan("")}) {
    SCOPED_TRACE(expansion);
    EXPECT_EQ(code_of([&] { static_cast<void>(open(file, {.expansion = expansion})); }),
              Errc::invalid_argument);
    EXPECT_EQ(
        code_of([&] {
          static_cast<void>(open_bytes(Tensor::zeros(DType::u8, {9}).storage(), {.expansion = expansion}));
        }),
        Errc::invalid_argument);
  }
  for (const double expansion : {0.0, 0.5, std::numeric_limits<double>::infinity()})
    EXPECT_EQ(open(file, {.expansion = expansion}).size(), 1U);
}

TEST_F(Expansion, ManyTensorsOfAnOnnxModelOnTheSameExternalBytesAreRefused) {
  using namespace onnx_wire;
  write(path("w.bin"), std::string(kBytes, '\1'));
  const auto size_of = [&](int names, double expansion) {
    std::vector<std::string> tensors;
    for (int i = 0; i < names; ++i)
      tensors.push_back(tensor("w" + std::to_string(i), 2, {kBytes}, external("w.bin")));
    write(path("m.onnx"), model_of(tensors));
    return open(path("m.onnx"), {.expansion = expansion}).size();
  };
  EXPECT_EQ(size_of(80, kExpansion), 80U);
  EXPECT_EQ(code_of([&] { size_of(90, kExpansion); }), Errc::expanded_view);
  EXPECT_EQ(size_of(90, 100), 90U);
}

TEST_F(Expansion, APackedFileThatNoReaderWouldTakeIsNotWritten) {
  const auto zeros = [](std::int64_t mebibytes) {
    Checkpoint checkpoint;
    checkpoint.add("w", Tensor::zeros(DType::u8, {mebibytes * kBytes}));
    return checkpoint;
  };
  save(zeros(60), path("small.mpk.gz"));
  EXPECT_EQ(open(path("small.mpk.gz")).total_bytes(), 60U * kBytes);
  EXPECT_EQ(code_of([&] { save(zeros(80), path("large.mpk.gz")); }), Errc::not_representable);
  EXPECT_FALSE(std::filesystem::exists(path("large.mpk.gz")));
}

}  // namespace
}  // namespace ballast
