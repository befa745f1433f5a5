// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking of weights drawn from N(0, 0.02), one core, for each kind of vector instructions, as
// multiples of the time of memcpy of the unpacked bytes. Every round times both, one after the other;
// "ratio" is the median of one over the median of the other, "size" what is left of the bytes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "containers/packed.h"

namespace ballast::packed {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kRawBytes = std::size_t{64} << 20U;

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

Bytes weights(Split how) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  const std::size_t item = element_bytes(how);
  Bytes raw(kRawBytes);
  for (std::size_t i = 0; i < kRawBytes; i += item) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(normal(random)) >> (32 - 8 * item);
    std::memcpy(raw.data() + i, &bits, item);
  }
  return raw;
}

struct Packed {
  std::vector<Bytes> blocks;  // with the bytes that unpacking may read behind them
  std::vector<std::size_t> sizes;

  [[nodiscard]] double size() const {
    std::size_t sum = 0;
    for (const std::size_t each : sizes) sum += each;
    return static_cast<double>(sum) / static_cast<double>(kRawBytes);
  }
};

std::span<const std::byte> block_of(const Bytes& raw, Split how, std::size_t index) {
  const std::size_t bytes = element_bytes(how) << written_log2(how);
  return std::span(raw).subspan(index * bytes, bytes);
}

std::size_t blocks_in(Split how) {
  return kRawBytes / (element_bytes(how) << written_log2(how));
}

void pack_all(BlockKind kind, Split how, const Bytes& raw, Isa isa, Packed& out) {
  BlockPacker packer(isa);
  out.blocks.resize(blocks_in(how));
  out.sizes.resize(blocks_in(how));
  for (std::size_t i = 0; i < blocks_in(how); ++i) {
    const auto block = block_of(raw, how, i);
    packer.pack(kind, how, packer.plan(kind, how, block), block, out.blocks[i]);
    out.sizes[i] = out.blocks[i].size();
  }
}

void unpack_all(Split how, const Packed& packed, Isa isa, Bytes& raw) {
  BlockUnpacker unpacker(isa);
  const std::size_t bytes = element_bytes(how) << written_log2(how);
  for (std::size_t i = 0; i < packed.blocks.size(); ++i)
    unpacker.unpack(how, std::span(packed.blocks[i]).first(packed.sizes[i]),
                    std::span(raw).subspan(i * bytes, bytes), "bench");
}

void measure(benchmark::State& state, BlockKind kind, Split how, Isa isa, bool unpacks) {
  const Bytes raw = weights(how);
  Bytes out(kRawBytes);
  Bytes copy(kRawBytes);
  Packed packed;
  pack_all(kind, how, raw, isa, packed);
  const double size = packed.size();
  for (Bytes& block : packed.blocks) block.resize(block.size() + BlockUnpacker::kSlack);
  std::vector<double> work_times;
  std::vector<double> copy_times;
  for (auto _ : state) {
    copy_times.push_back(seconds([&] { std::memcpy(copy.data(), raw.data(), kRawBytes); }));
    work_times.push_back(seconds([&] {
      if (unpacks)
        unpack_all(how, packed, isa, out);
      else
        pack_all(kind, how, raw, isa, packed);
    }));
    state.SetIterationTime(work_times.back());
  }
  if (unpacks && out != raw) state.SkipWithError("unpacked to something else");
  state.counters["GB/s"] = static_cast<double>(kRawBytes) / median(work_times) / 1e9;
  state.counters["memcpy_GB/s"] = static_cast<double>(kRawBytes) / median(copy_times) / 1e9;
  state.counters["ratio"] = median(work_times) / median(copy_times);
  state.counters["size"] = size;
}

const auto register_all = [] {
  const auto add = [](const std::string& name, BlockKind kind, Split how, Isa isa, bool unpacks) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](benchmark::State& state) { measure(state, kind, how, isa, unpacks); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(15);
  };
  constexpr const char* kIsa[] = {"scalar", "AVX2", "AVX-512"};
  for (const bool unpacks : {true, false}) {
    for (const BlockKind kind : {BlockKind::fast, BlockKind::small}) {
      for (const Split how : {Split::bf16, Split::f32}) {
        for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
          if (isa > best_isa()) continue;
          add(std::string(unpacks ? "unpack " : "pack ") + (kind == BlockKind::fast ? "fast " : "small ") +
                  (how == Split::bf16 ? "bf16, " : "f32, ") + kIsa[static_cast<int>(isa)],
              kind, how, isa, unpacks);
        }
      }
    }
  }
  return 0;
}();

}  // namespace
}  // namespace ballast::packed

BENCHMARK_MAIN();
