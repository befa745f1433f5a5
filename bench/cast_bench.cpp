// SPDX-License-Identifier: Apache-2.0
// Casts and transposes as multiples of memcpy's time. Every round times both, one after the other, on the
// same number of threads and into memory that is there already; "ratio" is the median of one over the median
// of the other.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "ballast/runtime.h"
#include "ballast/tensor.h"
#include "base/thread_pool.h"
#include "tensor/cast.h"
#include "tensor/copy.h"

namespace ballast {
namespace {

constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kColumns = 11008;
constexpr std::uint64_t kElements = kRows * kColumns;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// As large as possible a piece for each thread: that is how memcpy is fastest.
void copy_with_threads(std::byte* out, const std::byte* in, std::uint64_t size) {
  const auto threads = static_cast<std::uint64_t>(thread_count());
  parallel_for(threads, 1, [&](std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = size / threads * begin;
    std::memcpy(out + first, in + first, (end == threads ? size : size / threads * end) - first);
  });
}

Tensor filled(DType dtype, Shape shape) {
  Tensor tensor = Tensor::empty(dtype, std::move(shape));
  std::byte* bytes = tensor.mutable_data();
  for (std::uint64_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<std::byte>(i * 7 % 61);
  return tensor;
}

// `work` against memcpy of `in`'s first `size` bytes.
void against_memcpy(benchmark::State& state, const Tensor& in, std::uint64_t size, Tensor& copy,
                    const std::function<void()>& work) {
  set_thread_count(static_cast<int>(state.range(0)));
  std::vector<double> work_times;
  std::vector<double> copy_times;
  work();
  for (auto _ : state) {
    copy_times.push_back(seconds([&] { copy_with_threads(copy.mutable_data(), in.data(), size); }));
    work_times.push_back(seconds(work));
    state.SetIterationTime(work_times.back());
  }
  state.counters["memcpy_GB/s"] = static_cast<double>(size) / median(copy_times) / 1e9;
  state.counters["ratio"] = median(work_times) / median(copy_times);
}

void cast(benchmark::State& state, DType from, DType to) {
  const Tensor in = filled(from, {kRows, kColumns});
  Tensor out = Tensor::zeros(to, {kRows, kColumns});
  const std::uint64_t larger = std::max(in.size_bytes(), out.size_bytes());
  const Tensor plain = filled(DType::u8, {static_cast<std::int64_t>(larger)});
  Tensor copy = Tensor::zeros(DType::u8, {static_cast<std::int64_t>(larger)});
  against_memcpy(state, plain, larger, copy,
                 [&] { cast_elements(from, in.data(), to, out.mutable_data(), kElements); });
}

void transpose(benchmark::State& state, DType dtype, std::int64_t rows = kRows) {
  const Tensor in = filled(dtype, {rows, kColumns});
  Tensor out = Tensor::zeros(dtype, {kColumns, rows});
  Tensor copy = Tensor::zeros(dtype, {rows, kColumns});
  against_memcpy(state, in, in.size_bytes(), copy, [&] { copy_contiguous(in.t(), out.mutable_data()); });
}

// Both at once, into fresh memory as a caller gets it; against memcpy into memory that is there.
void cast_transposed(benchmark::State& state) {
  const Tensor in = filled(DType::f32, {kRows, kColumns});
  Tensor copy = Tensor::zeros(DType::f32, {kRows, kColumns});
  against_memcpy(state, in, in.size_bytes(), copy, [&] { benchmark::DoNotOptimize(in.t().to(DType::f16)); });
}

void contiguous(benchmark::State& state) {
  const Tensor in = filled(DType::f32, {kRows, kColumns});
  Tensor out = Tensor::zeros(DType::f32, {kRows, kColumns});
  Tensor copy = Tensor::zeros(DType::f32, {kRows, kColumns});
  against_memcpy(state, in, in.size_bytes(), copy, [&] { copy_contiguous(in, out.mutable_data()); });
}

const auto register_all = [] {
  const auto options = [](benchmark::internal::Benchmark* bench) {
    bench->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(25);
  };
  const auto add_cast = [&](const char* name, DType from, DType to) {
    options(benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { cast(state, from, to); }));
  };
  add_cast("cast/f32_f16", DType::f32, DType::f16);
  add_cast("cast/f32_bf16", DType::f32, DType::bf16);
  add_cast("cast/bf16_f32", DType::bf16, DType::f32);
  add_cast("cast/f16_f32", DType::f16, DType::f32);
  add_cast("cast/f16_bf16", DType::f16, DType::bf16);
  add_cast("cast/f64_f32", DType::f64, DType::f32);
  add_cast("cast/f8_e4m3_f32", DType::f8_e4m3, DType::f32);
  add_cast("cast/f8_e4m3_bf16", DType::f8_e4m3, DType::bf16);
  add_cast("cast/f32_f8_e4m3", DType::f32, DType::f8_e4m3);
  options(benchmark::RegisterBenchmark("transpose/f32",
                                       [](benchmark::State& state) { transpose(state, DType::f32); }));
  // Rows of the output that begin on no cache line.
  options(benchmark::RegisterBenchmark(
      "transpose/f32_odd", [](benchmark::State& state) { transpose(state, DType::f32, kRows + 1); }));
  options(benchmark::RegisterBenchmark("transpose/u16",
                                       [](benchmark::State& state) { transpose(state, DType::u16); }));
  options(benchmark::RegisterBenchmark("transpose/u8",
                                       [](benchmark::State& state) { transpose(state, DType::u8); }));
  options(benchmark::RegisterBenchmark("transpose/f64",
                                       [](benchmark::State& state) { transpose(state, DType::f64); }));
  options(benchmark::RegisterBenchmark("cast_transposed/f32_f16", cast_transposed));
  options(benchmark::RegisterBenchmark("copy/f32", contiguous));
  return 0;
}();

}  // namespace
}  // namespace ballast

BENCHMARK_MAIN();
