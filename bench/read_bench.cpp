// SPDX-License-Identifier: Apache-2.0
// Reading the files of BALLAST_BENCH_FOLDER: opened and listed, one tensor looked up, every byte read in
// place, every byte brought into memory; and what the machine can do without us: a bare mapping summed,
// positioned reads into fresh memory. Cases are "JOB FILE"; bench/read.py asks for them in turn.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ballast/io.h"
#include "ballast/steps.h"
#include "base/thread_pool.h"
#include "serve.h"

namespace {

using namespace ballast;

constexpr std::uint64_t kPiece = std::uint64_t{4} << 20U;

volatile std::uint64_t sink;  // so that no sum is left out

std::uint64_t sum_of(const std::byte* bytes, std::uint64_t size) {
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at + 8 <= size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    sum += word;
  }
  return sum;
}

void sum_in_pieces(const std::byte* bytes, std::uint64_t size) {
  parallel_for((size + kPiece - 1) / kPiece, 1, [&](std::uint64_t begin, std::uint64_t end) {
    sink = sum_of(bytes + begin * kPiece, std::min(size, end * kPiece) - begin * kPiece);
  });
}

void open_and_list(const std::string& path) {
  const Checkpoint checkpoint = open(path);
  std::uint64_t sum = 0;
  for (const Entry& entry : checkpoint) sum += entry.name.size() + entry.shape.size() + entry.bytes;
  sink = sum;
}

void open_and_read(const std::string& path) {
  const Checkpoint checkpoint = open(path);
  for (const Entry& entry : checkpoint) {
    const Tensor tensor = entry.tensor();
    sum_in_pieces(tensor.data(), tensor.size_bytes());
  }
}

/// An open file, as the operating system has it.
class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ < 0) throw std::runtime_error("cannot open " + path);
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

void bare_map_and_read(const std::string& path) {
  const Descriptor file(path);
  const std::uint64_t size = std::filesystem::file_size(path);
  void* map = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
  if (map == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  sum_in_pieces(static_cast<const std::byte*>(map), size);
  munmap(map, size);
}

/// As fast as bytes of a file come into memory that was not there before.
void bare_reads_into_new_memory(const std::string& path) {
  const Descriptor file(path);
  const std::uint64_t size = std::filesystem::file_size(path);
  constexpr std::size_t kHuge = std::size_t{2} << 20U;
  const std::size_t rounded = (size + kHuge - 1) / kHuge * kHuge;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHuge, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, rounded, MADV_HUGEPAGE);
  parallel_for((size + kPiece - 1) / kPiece, 1, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin * kPiece; at < std::min(size, end * kPiece);) {
      const ssize_t count =
          pread(file.number(), memory + at, std::min(kPiece, size - at), static_cast<off_t>(at));
      if (count <= 0) throw std::runtime_error("cannot read " + path);
      at += static_cast<std::uint64_t>(count);
    }
  });
  std::free(memory);
}

bench::Cases cases() {
  const char* folder = std::getenv("BALLAST_BENCH_FOLDER");
  if (folder == nullptr) throw std::runtime_error("BALLAST_BENCH_FOLDER says where the files are");
  bench::Cases all;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string path = file.path().string();
    const std::string name = file.path().filename().string();
    const auto add = [&](const char* job, std::function<void()> run) {
      all[job + (" " + name)] = {.run = std::move(run), .work = 0, .unit = ""};
    };
    add("list", [path] { open_and_list(path); });
    add("look up", [path] {
      const Checkpoint checkpoint = open(path);
      sink = checkpoint.tensor(checkpoint[checkpoint.size() / 2].name).size_bytes();
    });
    add("read in place", [path] { open_and_read(path); });
    add("bring into memory", [path] { sink = in_memory(open(path)).size(); });
    if (!file.is_regular_file()) continue;
    add("bare map", [path] { bare_map_and_read(path); });
    add("bare reads", [path] { bare_reads_into_new_memory(path); });
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  return ballast::bench::main_of(argc, argv, cases);
}
