// SPDX-License-Identifier: Apache-2.0
// Linear, over every way a weight can lie and every path its number of rows leads to. Run a second time with
// ONEDNN_MAX_CPU_ISA=AVX2 (tests/CMakeLists.txt): which order oneDNN likes is the processor's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ballast/ops.h"
#include "ballast/storage.h"
#include "ops/cache.h"
#include "ops/kernels.h"
#include "ops/onednn.h"
#include "ops/packed.h"

namespace ballast {
namespace {

enum class Lies { in_out, out_in, every_second, odd_byte };

// The same values, lying that way.
Tensor laid(const Tensor& weight, Lies how) {
  switch (how) {
    case Lies::in_out:
      return weight;
    case Lies::out_in:
      return weight.t().clone().t();
    case Lies::every_second: {
      Tensor wide = full({weight.size(0), weight.size(1) * 2}, 7);
      Tensor view = wide.index({ellipsis, Slice{{}, {}, 2}});
      assign(view, weight);
      return view;
    }
    case Lies::odd_byte:
      break;
  }
  const auto bytes = static_cast<std::size_t>(weight.numel()) * sizeof(float);
  const auto storage = Storage::heap(bytes + 1);
  const Tensor turned = weight.t().clone();
  std::memcpy(static_cast<std::byte*>(storage->mutable_data()) + 1, turned.data(), bytes);
  return Tensor::contiguous_view(DType::f32, turned.shape(), storage, 1).t();
}

Tensor by_loops(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor out = zeros({x.size(0), weight.size(1)});
  const auto to = out.mutable_span<float>();
  const auto from = x.span<float>();
  const auto w = weight.span<float>();
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    for (std::int64_t column = 0; column < weight.size(1); ++column) {
      double sum = bias.defined() ? bias.span<float>()[static_cast<std::size_t>(column)] : 0;
      for (std::int64_t k = 0; k < weight.size(0); ++k)
        sum += static_cast<double>(from[static_cast<std::size_t>(row * x.size(1) + k)]) *
               static_cast<double>(w[static_cast<std::size_t>(k * weight.size(1) + column)]);
      to[static_cast<std::size_t>(row * weight.size(1) + column)] = static_cast<float>(sum);
    }
  }
  return out;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return max(abs(a - b)).item<double>();
}

TEST(Linear, GivesTheProductHoweverItsWeightLies) {
  Generator generator{11};
  for (const std::int64_t in : {1, 33, 65}) {
    for (const std::int64_t out : {1, 47, 1024}) {
      const Tensor weight = randn({in, out}, generator);
      const Tensor bias = randn({out}, generator);
      for (const std::int64_t rows : {1, 3, 4, 47, 48, 130}) {
        const Tensor x = randn({rows, in}, generator);
        for (const bool has_bias : {false, true}) {
          const Tensor b = has_bias ? bias : Tensor();
          const Tensor wanted = by_loops(x, weight, b);
          for (const Lies how : {Lies::in_out, Lies::out_in, Lies::every_second, Lies::odd_byte}) {
            const Tensor w = laid(weight, how);
            OpCache cache;
            for (OpCache* kept : {static_cast<OpCache*>(nullptr), &cache, &cache})
              EXPECT_LE(largest_difference(linear(x, w, b, {.cache = kept}), wanted), 1e-4)
                  << rows << " rows, " << in << " to " << out << ", lies " << static_cast<int>(how);
          }
        }
      }
    }
  }
}

// Whether it was copied or is read where it lies.
TEST(Linear, SeesWhatIsWrittenIntoItsWeightBetweenTwoCalls) {
  Generator generator{12};
  for (const std::int64_t rows : {2, 17, 64}) {
    for (const Lies how : {Lies::in_out, Lies::out_in, Lies::every_second}) {
      const Tensor x = randn({rows, 16}, generator);
      Tensor weight = laid(randn({16, 1024}, generator), how);
      OpCache cache;
      static_cast<void>(linear(x, weight, {}, {.cache = &cache}));
      const Tensor other = randn({16, 1024}, generator);
      assign(weight, other);
      EXPECT_LE(largest_difference(linear(x, weight, {}, {.cache = &cache}), by_loops(x, other, {})), 1e-4);
    }
  }
}

// The layer may go before its weights do, and the other way round.
TEST(Linear, KeepsTheWeightThatItReadsWhereItLies) {
  Generator generator{13};
  const Tensor x = randn({64, 16}, generator);
  const Tensor values = randn({16, 1024}, generator);
  OpCache cache;
  for (int round = 0; round < 3; ++round) {
    const Tensor weight = laid(values, Lies::out_in);  // gone, and its memory used again, after each round
    EXPECT_LE(largest_difference(linear(x, weight, {}, {.cache = &cache}), by_loops(x, values, {})), 1e-4);
  }
}

// Whatever the number of rows: a weight in an order of its own is as large as the weight.
TEST(Linear, BringsItsWeightIntoAnotherOrderOnce) {
  if (ops::isa_in_use() == Isa::scalar) GTEST_SKIP() << "few rows have an order of their own there";
  Generator generator{14};
  for (const auto& [in, out] : {std::pair{96, 200}, std::pair{200, 1100}, std::pair{1100, 96}}) {
    const Tensor weight = randn({in, out}, generator);
    OpCache cache;
    for (const std::int64_t rows : {64, 1, 2, 3, 4, 5, 8, 16, 33, 64, 100, 128, 197, 512})
      static_cast<void>(linear(randn({rows, in}, generator), weight, {}, {.cache = &cache}));
    const auto& state = cache.state();
    const auto is_weight = [](const OpCache::State::Entry& entry) {
      return *entry.type == typeid(ops::OrderedWeight) || *entry.type == typeid(ops::PackedMatrix);
    };
    EXPECT_EQ(std::count_if(state.entries.begin(), state.entries.end(), is_weight) +
                  std::count_if(state.parts.begin(), state.parts.end(), is_weight),
              1)
        << in << " to " << out;
  }
}

// A layer of more cells than a cache has room for shapes, and shapes that never come again.
TEST(Linear, KeepsWhatItUsesThroughManyShapes) {
  Generator generator{15};
  const Tensor weight = randn({96, 200}, generator);
  OpCache cache;
  for (std::int64_t rows = 4; rows < 200; ++rows)
    static_cast<void>(linear(randn({rows, 96}, generator), weight, {}, {.cache = &cache}));
  EXPECT_LE(cache.state().entries.size(), OpCache::State::kMost);
  EXPECT_LE(cache.state().parts.size(), 1U);
  const Tensor x = randn({50, 96}, generator);
  EXPECT_LE(largest_difference(linear(x, weight, {}, {.cache = &cache}), by_loops(x, weight, {})), 1e-4);
}

}  // namespace
}  // namespace ballast
