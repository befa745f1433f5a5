// SPDX-License-Identifier: Apache-2.0
// Safetensors: open and list against simdjson's bare DOM parse of the same header, save and edit against cp. Each figure is a median of interleaved rounds;
// what counts are the ratios. usage: open_bench [FOLDER [GIGABYTES]]
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <simdjson.h>

#include "ballast/safetensors.h"
#include "base/bytes.h"

namespace {

using namespace ballast;

constexpr int kRounds = 9;

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Medians of two jobs, run in turns, so that a slow spell of the machine hits both.
std::pair<double, double> compare(int rounds, const std::function<void()>& ours, const std::function<void()>& theirs) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < rounds; ++i) {
    a.push_back(milliseconds(ours));
    b.push_back(milliseconds(theirs));
  }
  return {median(a), median(b)};
}

// Names as a transformer has them.
std::string many_tensors(const std::string& folder, int count) {
  Checkpoint checkpoint;
  const Tensor tensor = Tensor::zeros(DType::bf16, {4, 2});
  for (int i = 0; i < count; ++i) checkpoint.add(fmt::format("model.layers.{}.mlp.experts.{}.gate_proj.weight", i / 128, i % 128), tensor);
  const std::string path = fmt::format("{}/open_bench_{}.safetensors", folder, count);
  safetensors::save(checkpoint, path, {.overwrite = true});
  return path;
}

std::uint64_t list(const Checkpoint& checkpoint) {
  std::uint64_t sum = 0;
  for (const Entry& entry : checkpoint) sum += entry.name.size() + entry.shape.size() + entry.bytes;
  return sum;
}

void bench_open(const std::string& folder, int count) {
  const std::string path = many_tensors(folder, count);
  std::ifstream in(path, std::ios::binary);
  std::uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  simdjson::padded_string header(length);
  in.read(header.data(), static_cast<std::streamsize>(length));
  volatile std::uint64_t sink = 0;
  const auto [ours, theirs] = compare(
      kRounds, [&] { sink = sink + list(safetensors::open(path)); },
      [&] {
        simdjson::dom::parser parser;
        sink = sink + parser.parse(header).get_object().size();
      });
  fmt::print("open + list {:>7} tensors, {:5.1f} MB header: {:7.3f} ms ({:4.0f} ns a tensor), simdjson DOM parse {:7.3f} ms, ratio {:.2f}\n", count,
             static_cast<double>(length) / 1e6, ours, ours * 1e6 / count, theirs, ours / theirs);
  std::filesystem::remove(path);
}

void cp(const std::string& from, const std::string& to) {
  const pid_t child = fork();
  if (child == 0) {
    execlp("cp", "cp", "--reflink=never", from.c_str(), to.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  // What the library does as well: the data is on the disk.
  if (FILE* file = std::fopen(to.c_str(), "r+")) {
    fsync(fileno(file));
    std::fclose(file);
  }
}

void bench_save(const std::string& folder, double gigabytes) {
  const std::string in = folder + "/save_bench_in.safetensors";
  const std::string out = folder + "/save_bench_out.safetensors";
  constexpr std::int64_t kTensor = 8 << 20;
  Checkpoint checkpoint;
  Tensor tensor = Tensor::zeros(DType::f32, {kTensor / 4});
  for (std::int64_t i = 0; i * kTensor < static_cast<std::int64_t>(gigabytes * 1e9); ++i) checkpoint.add(fmt::format("block.{}.weight", i), tensor);
  safetensors::save(checkpoint, in, {.overwrite = true});
  const auto row = [&](const char* what, const std::function<void()>& work) {
    const auto [ours, theirs] = compare(
        5, [&] { std::filesystem::remove(out); work(); }, [&] { std::filesystem::remove(out); cp(in, out); });
    fmt::print("{:<42} {:8.1f} ms, cp + fsync {:8.1f} ms, ratio {:.2f}\n", what, ours, theirs, ours / theirs);
  };
  row("save from a file, same order", [&] { safetensors::save(safetensors::open(in), out); });
  row("save from a file, names in another order", [&] {
    Checkpoint renamed;
    const Checkpoint source = safetensors::open(in);
    for (std::size_t i = 0; i < source.size(); ++i) renamed.add(fmt::format("{:08x}", static_cast<std::uint32_t>(i * 2654435761U)), source[i].tensor());
    safetensors::save(renamed, out);
  });
  row("edit the metadata", [&] { safetensors::edit(in, out, {.metadata = Metadata{{"by", "bench"}}}); });
  std::filesystem::remove(in);
  std::filesystem::remove(out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  const double gigabytes = argc > 2 ? std::stod(argv[2]) : 0.5;
  for (const int count : {1'000, 10'000, 100'000}) bench_open(folder, count);
  bench_save(folder, gigabytes);
}
