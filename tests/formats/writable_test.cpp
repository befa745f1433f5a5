// SPDX-License-Identifier: Apache-2.0
// Files opened so that their tensors may be written: the file itself never changes, and what is saved is what
// was written.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "formats/safetensors_testing.h"

namespace ballast {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Large enough that containers align it, so that it is a view of the file.
Checkpoint thousand_ones() {
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor::from<float>(std::vector<float>(1000, 1.0F), {1000}));
  return checkpoint;
}

class Writable : public testing::TestWithParam<const char*> {};

TEST_P(Writable, TheFileStaysAndWhatWasWrittenIsSaved) {
  const safetensors::TemporaryFolder folder;
  const std::string path = folder.file("in");
  save(thousand_ones(), path, {.format = format_named(GetParam())});
  const std::string before = content(path);
  for (const Io io : {Io::map, Io::read}) {
    Checkpoint opened = open(path, {.io = io, .writable = true});
    Tensor tensor = opened.tensor("w");
    tensor.mutable_span<float>()[999] = 5.0F;
    EXPECT_EQ(content(path), before);
    EXPECT_EQ(open(path).tensor("w").span<float>()[999], 1.0F);

    float last = 0;
    tensor.read(999 * sizeof(float), std::as_writable_bytes(std::span(&last, 1)));
    EXPECT_EQ(last, 5.0F);
    const std::string copy = folder.file("copy.safetensors");
    save(opened, copy, {.overwrite = true});
    EXPECT_EQ(open(copy).tensor("w").span<float>()[999], 5.0F);
    EXPECT_EQ(open(copy).tensor("w").span<float>()[998], 1.0F);
  }
}

TEST_P(Writable, OnlyWhenAskedFor) {
  const safetensors::TemporaryFolder folder;
  const std::string path = folder.file("in");
  save(thousand_ones(), path, {.format = format_named(GetParam())});
  Tensor tensor = open(path).tensor("w");
  EXPECT_THROW(static_cast<void>(tensor.mutable_data()), Error);
}

INSTANTIATE_TEST_SUITE_P(Formats, Writable,
                         testing::Values("safetensors", "record", "torch-zip", "torch-legacy", "npz"));

}  // namespace
}  // namespace ballast
