// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "ballast/steps.h"
#include "base/file.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

/// A file whose byte i is i % 251, gone at the end.
class CountingFile {
 public:
  explicit CountingFile(std::size_t size)
      : path_(testing::TempDir() + "in_memory_" + std::to_string(getpid()) + ".bin") {
    std::vector<char> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i % 251);
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
  }

  CountingFile(const CountingFile&) = delete;
  CountingFile& operator=(const CountingFile&) = delete;
  ~CountingFile() { ::unlink(path_.c_str()); }

  [[nodiscard]] std::shared_ptr<const File> open() const { return File::open(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(tensor.size_bytes()));
  tensor.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::vector<std::uint8_t> counting(std::size_t begin, std::size_t end) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = begin; i < end; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 251));
  return bytes;
}

TEST(InMemory, LargeAndSmallTensorsOfAFileHaveItsBytesWhenItIsGone) {
  Checkpoint copy;
  {
    const CountingFile file(std::size_t{9} << 20U);
    const auto open = file.open();
    Checkpoint in;
    // One of 8 MiB and one byte, then small ones, near and far.
    const auto whole = range_of(*open, 100, (std::size_t{8} << 20U) + 1, Access::map);
    in.add("large", Tensor::contiguous_view(DType::u8, {static_cast<std::int64_t>(whole->size())}, whole));
    for (const std::size_t at : {9000000U, 9000010U, 9003000U, 9100000U}) {
      const auto storage = range_of(*open, at, 8, Access::read);
      in.add("small." + std::to_string(at), Tensor::contiguous_view(DType::u8, {2, 4}, storage));
    }
    copy = in_memory(in);
    std::ofstream(file.path(), std::ios::trunc);  // were it still mapped, reading it would be fatal
  }
  EXPECT_EQ(bytes_of(copy.tensor("large")), counting(100, 100 + (std::size_t{8} << 20U) + 1));
  for (const std::size_t at : {9000000U, 9000010U, 9003000U, 9100000U})
    EXPECT_EQ(bytes_of(copy.tensor("small." + std::to_string(at))), counting(at, at + 8)) << at;
}

TEST(InMemory, ViewsKeepTheirStridesAndWhatTheyShare) {
  const CountingFile file(4096);
  const auto storage = range_of(*file.open(), 64, 1024, Access::map);
  Checkpoint in;
  in.add("transposed", Tensor(DType::u8, {4, 8}, {1, 4}, storage, 16 * 8));
  in.add("overlaps", Tensor(DType::u8, {8}, {1}, storage, 20 * 8));
  in.add("every third", Tensor(DType::u8, {10}, {3}, storage, 512 * 8));
  in.add("tied", Tensor(DType::u8, {8}, {1}, storage, 20 * 8));
  const Checkpoint out = in_memory(in);
  for (const Entry& entry : in) {
    EXPECT_EQ(bytes_of(out.tensor(entry.name)), bytes_of(entry.tensor())) << entry.name;
    EXPECT_EQ(out.tensor(entry.name).strides(), entry.tensor().strides()) << entry.name;
  }
  EXPECT_TRUE(out.tensor("overlaps").same_view(out.tensor("tied")));
  EXPECT_EQ(out.tensor("overlaps").data() - out.tensor("transposed").data(), 4);
}

TEST(InMemory, ComputesWhatWasToBeComputedAndKeepsShapesEmptiesAndScalars) {
  Checkpoint in;
  in.add("cast", Tensor::from<float>({1.5F, -2.F, 3.25F}, {3}));
  in = cast(in, Precision::half);
  in.add("shape only", Tensor(DType::f32, {2, 3}));
  in.add("empty", Tensor::from<float>({}, {0, 7}));
  in.add("scalar", Tensor::from<std::int64_t>({42}, {}));
  const Checkpoint out = in_memory(in);
  EXPECT_EQ(out.tensor("cast").dtype(), DType::f16);
  EXPECT_EQ(bytes_of(out.tensor("cast")), (std::vector<std::uint8_t>{0x00, 0x3E, 0x00, 0xC0, 0x80, 0x42}));
  EXPECT_TRUE(out.tensor("cast").storage()->ready());
  EXPECT_FALSE(out.tensor("shape only").has_data());
  EXPECT_EQ(out.tensor("empty").shape(), (Shape{0, 7}));
  EXPECT_EQ(out.tensor("scalar").item(), 42);
}

TEST(InMemory, AFileThatChangedIsAnErrorAndNotOtherBytes) {
  const CountingFile file(4096);
  Checkpoint in;
  in.add("x", Tensor::contiguous_view(DType::u8, {1024}, range_of(*file.open(), 0, 1024, Access::read)));
  std::ofstream(file.path(), std::ios::app) << "more";
  try {
    (void)in_memory(in);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::file_changed);
  }
}

}  // namespace
}  // namespace ballast
