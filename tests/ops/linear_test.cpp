// SPDX-License-Identifier: Apache-2.0
// Linear, over every way a weight can lie and every path its number of rows leads to. Run a second time with
// ONEDNN_MAX_CPU_ISA=AVX2 (tests/CMakeLists.txt): which order oneDNN likes is the processor's.
#include <gtest/gtest.h>

#include <cstring>

#include "ballast/ops.h"
#include "ballast/storage.h"

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

}  // namespace
}  // namespace ballast
