// SPDX-License-Identifier: Apache-2.0
// Safetensors: open and list against simdjson's bare DOM parse of the same header; save and edit against cp.
// Pairs are named JOB/ours and JOB/<peer>, which is how bench/run.py finds them. Files lie in
// BALLAST_BENCH_FOLDER, or in the folder for temporaries.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "ballast/safetensors.h"

namespace {

using namespace ballast;

std::string folder() {
  const char* given = std::getenv("BALLAST_BENCH_FOLDER");
  return given != nullptr ? given : std::filesystem::temp_directory_path().string();
}

// Names as a mixture of experts has them.
std::string many_tensors(int count) {
  Checkpoint checkpoint;
  const Tensor tensor = Tensor::zeros(DType::bf16, {4, 2});
  for (int i = 0; i < count; ++i) {
    checkpoint.add(fmt::format("model.layers.{}.mlp.experts.{}.gate_proj.weight", i / 128, i % 128), tensor);
  }
  const std::string path = fmt::format("{}/open_bench_{}.safetensors", folder(), count);
  safetensors::save(checkpoint, path, {.overwrite = true});
  return path;
}

simdjson::padded_string header_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  simdjson::padded_string header(length);
  in.read(header.data(), static_cast<std::streamsize>(length));
  return header;
}

void register_open(int count) {
  const std::string path = many_tensors(count);
  const std::string job = fmt::format("open + list, {} tensors", count);
  benchmark::RegisterBenchmark((job + "/ours").c_str(), [path](benchmark::State& state) {
    for (auto _ : state) {
      const Checkpoint checkpoint = safetensors::open(path);
      std::uint64_t sum = 0;
      for (const Entry& entry : checkpoint) sum += entry.name.size() + entry.shape.size() + entry.bytes;
      benchmark::DoNotOptimize(sum);
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(safetensors::open(path).size()));
  })->UseRealTime();
  benchmark::RegisterBenchmark((job + "/simdjson DOM parse of the header").c_str(),
                               [path](benchmark::State& state) {
                                 const simdjson::padded_string header = header_of(path);
                                 for (auto _ : state) {
                                   simdjson::dom::parser parser;
                                   benchmark::DoNotOptimize(parser.parse(header).get_object().size());
                                 }
                               })
      ->UseRealTime();
}

void cp(const std::string& from, const std::string& to) {
  const pid_t child = fork();
  if (child == 0) {
    execlp("cp", "cp", "--reflink=never", from.c_str(), to.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  // As the library does: it counts when the data is on the disk.
  if (FILE* file = std::fopen(to.c_str(), "r+")) {
    fsync(fileno(file));
    static_cast<void>(std::fclose(file));
  }
}

void register_copy(const std::string& name, const std::string& in,
                   const std::function<void(const std::string&)>& work) {
  const std::string out = folder() + "/save_bench_out.safetensors";
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) {
        for (auto _ : state) {
          state.PauseTiming();
          std::filesystem::remove(out);
          state.ResumeTiming();
          work(out);
        }
        std::filesystem::remove(out);
        state.SetBytesProcessed(state.iterations() *
                                static_cast<std::int64_t>(std::filesystem::file_size(in)));
      })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void register_save() {
  constexpr std::int64_t kTensor = 8 << 20;
  constexpr int kTensors = 64;
  const std::string in = folder() + "/save_bench_in.safetensors";
  Checkpoint checkpoint;
  const Tensor tensor = Tensor::zeros(DType::f32, {kTensor / 4});
  for (int i = 0; i < kTensors; ++i) checkpoint.add(fmt::format("block.{}.weight", i), tensor);
  safetensors::save(checkpoint, in, {.overwrite = true});

  const auto copy = [in](const std::string& out) { cp(in, out); };
  register_copy("save from a file, 0.5 GB/ours", in,
                [in](const std::string& out) { safetensors::save(safetensors::open(in), out); });
  register_copy("save from a file, 0.5 GB/cp and fsync", in, copy);
  register_copy("edit the metadata, 0.5 GB/ours", in, [in](const std::string& out) {
    safetensors::edit(in, out, {.metadata = Metadata{{"by", "bench"}}});
  });
  register_copy("edit the metadata, 0.5 GB/cp and fsync", in, copy);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const int count : {1'000, 10'000, 100'000}) register_open(count);
  register_save();
  benchmark::RunSpecifiedBenchmarks();
  for (const int count : {1'000, 10'000, 100'000})
    std::filesystem::remove(fmt::format("{}/open_bench_{}.safetensors", folder(), count));
  std::filesystem::remove(folder() + "/save_bench_in.safetensors");
}
