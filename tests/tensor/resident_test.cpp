// SPDX-License-Identifier: Apache-2.0
#include "tensor/resident.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "ballast/safetensors.h"
#include "base/file.h"
#include "base/scratch.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

constexpr std::int64_t kRows = 700;
constexpr std::int64_t kColumns = 513;

// How many of its pages the process has mapped: mincore() would say what the system keeps.
std::size_t resident_pages(const Tensor& tensor) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data());
  const int file = open("/proc/self/pagemap", O_RDONLY);
  std::size_t found = 0;
  for (std::uintptr_t at = data / page; at <= (data + tensor.size_bytes() - 1) / page; ++at) {
    std::uint64_t entry = 0;
    EXPECT_EQ(pread(file, &entry, sizeof(entry), static_cast<off_t>(at * sizeof(entry))), 8);
    found += entry >> 63U;
  }
  close(file);
  return found;
}

class GiveBackPages : public Scratch {
 protected:
  GiveBackPages() {
    std::vector<float> values(kRows * kColumns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
    whole_ = Tensor::from(std::span<const float>(values), {kRows, kColumns});
    Checkpoint checkpoint;
    for (const char* name : {"a", "b", "c"}) checkpoint.add(name, whole_);
    safetensors::save(checkpoint, path("file.safetensors"));
  }

  [[nodiscard]] bool is_whole(const Tensor& tensor) const {
    return std::memcmp(tensor.data(), whole_.data(), whole_.size_bytes()) == 0;
  }

  Tensor whole_;
};

TEST_F(GiveBackPages, OfAMappedFileLeaveAndComeBack) {
  const Checkpoint file = safetensors::open(path("file.safetensors"));
  const Tensor a = file.tensor("a");
  const Tensor b = file.tensor("b");
  ASSERT_TRUE(is_whole(a) && is_whole(b));
  const std::size_t before = resident_pages(b);
  EXPECT_GT(before, 300U);
  give_back_pages(b);
  EXPECT_LE(resident_pages(b), 2U) << "those it shares with its neighbours";
  EXPECT_GT(resident_pages(a), 300U);
  EXPECT_TRUE(is_whole(b));
  give_back_pages(b.t());
  EXPECT_LE(resident_pages(b), 2U);
  EXPECT_TRUE(is_whole(b));
}

TEST_F(GiveBackPages, LeaveOtherMemoryAlone) {
  const auto file = File::open(path("file.safetensors"), {.sharing = Sharing::copy_on_write, .io = Io::map});
  Tensor written =
      Tensor::contiguous_view(DType::f32, {kRows, kColumns},
                              range_of(*file, file->size() - whole_.size_bytes(), whole_.size_bytes()));
  written.mutable_span<float>()[5] = -7;
  Tensor heap = whole_.clone();
  const Tensor borrowed = Tensor::contiguous_view(
      DType::f32, {kRows, kColumns}, Storage::borrow(std::as_const(heap).data(), heap.size_bytes()));
  const auto bytes = memory_source(heap.storage(), "memory");
  const Tensor of_memory =
      Tensor::contiguous_view(DType::f32, {kRows, kColumns}, Storage::of(*bytes, 0, heap.size_bytes()));
  const Tensor shape_alone(DType::f32, {kRows, kColumns});
  for (const Tensor& each : {written, heap, borrowed, of_memory, shape_alone, Tensor()})
    give_back_pages(each);
  EXPECT_EQ(written.span<float>()[5], -7);
  EXPECT_TRUE(is_whole(heap));
}

TEST_F(GiveBackPages, OfAPartThatIsNotDenseStay) {
  const Checkpoint file = safetensors::open(path("file.safetensors"));
  const Tensor b = file.tensor("b");
  ASSERT_TRUE(is_whole(b));
  const std::size_t before = resident_pages(b);
  give_back_pages(b.narrow(1, 0, 300));
  EXPECT_EQ(resident_pages(b), before);
}

}  // namespace
}  // namespace ballast
