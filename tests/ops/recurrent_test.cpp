// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN against the plain loops of reference_recurrent.cpp, over what decides how their work is
// divided: samples (tiles of several heights), hidden values (whole panels and not, more than a stretch),
// directions, threads. Run a second time with ONEDNN_MAX_CPU_ISA=AVX2 and SSE41 (tests/CMakeLists.txt).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "ballast/ops.h"
#include "ballast/runtime.h"
#include "ops/reference.h"

namespace ballast {
namespace {

using ops_tests::array_of;
using ops_tests::Arrays;
using ops_tests::Json;

class RecurrentThreads {
 public:
  explicit RecurrentThreads(int count) : before_(thread_count()) { set_thread_count(count); }
  RecurrentThreads(const RecurrentThreads&) = delete;
  RecurrentThreads& operator=(const RecurrentThreads&) = delete;
  ~RecurrentThreads() { set_thread_count(before_); }

 private:
  int before_;
};

struct Sizes {
  std::int64_t steps;
  std::int64_t batch;
  std::int64_t in;
  std::int64_t hidden;
  std::int64_t projection;  // 0: none
};

struct RecurrentCase {
  std::string kind;
  Sizes sizes;
  bool bidirectional;
  Tensor x;
  Tensor hidden;
  Tensor cell;
  std::vector<RecurrentWeights> weights;

  RecurrentCase(std::string name, Sizes of, bool both, Generator& generator)
      : kind(std::move(name)), sizes(of), bidirectional(both) {
    const std::int64_t gates = (kind == "lstm" ? 4 : (kind == "gru" ? 3 : 1)) * sizes.hidden;
    const std::int64_t output = sizes.projection == 0 ? sizes.hidden : sizes.projection;
    const std::int64_t directions = both ? 2 : 1;
    // States that neither die away nor run wild, whatever the size.
    const double scale = 0.8 / std::sqrt(static_cast<double>(output));
    const auto small = [&](const Shape& shape) { return randn(shape, generator) * scale; };
    x = small({sizes.steps, sizes.batch, sizes.in});
    hidden = small({2 * directions, sizes.batch, output});
    if (kind == "lstm") cell = small({2 * directions, sizes.batch, sizes.hidden});
    for (std::int64_t i = 0; i < 2 * directions; ++i) {
      weights.push_back({small({i < directions ? sizes.in : output * directions, gates}),
                         small({output, gates}), small({gates}), small({gates}),
                         sizes.projection == 0 ? Tensor() : small({sizes.hidden, sizes.projection})});
    }
  }

  [[nodiscard]] std::vector<Tensor> run(OpCache* cache) const {
    const RecurrentArgs args{.bidirectional = bidirectional, .cache = cache};
    if (kind == "lstm") {
      const LstmResult result = lstm(x, weights, hidden, cell, args);
      return {result.output, result.hidden, result.cell};
    }
    const RecurrentResult result =
        kind == "gru" ? gru(x, weights, hidden, args) : rnn(x, weights, hidden, RnnNonlinearity::tanh, args);
    return {result.output, result.hidden};
  }

  [[nodiscard]] Arrays by_loops() const {
    Arrays in = {array_of(x), array_of(hidden), array_of(cell)};
    for (const RecurrentWeights& w : weights)
      for (const Tensor* one : {&w.weight_ih, &w.weight_hh, &w.bias_ih, &w.bias_hh, &w.weight_hr})
        in.push_back(array_of(*one));
    const Json attributes = {
        {"bidirectional", bidirectional}, {"batch_first", false}, {"nonlinearity", "tanh"}};
    return ops_tests::reference_recurrent().at(kind)(in, attributes);
  }

  [[nodiscard]] std::string name() const {
    return kind + " batch " + std::to_string(sizes.batch) + " hidden " + std::to_string(sizes.hidden) +
           " projection " + std::to_string(sizes.projection) + (bidirectional ? " both ways" : "");
  }
};

double largest_difference(const Tensor& found, const ops_tests::Array& expected) {
  double largest = 0;
  const Tensor dense = found.contiguous();
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(dense.span<float>()[i]) - expected.values[i]));
  return largest;
}

void expect_equal_to_loops(const RecurrentCase& one) {
  const Arrays expected = one.by_loops();
  OpCache cache;
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 5}) {
    const RecurrentThreads scope(threads);
    for (OpCache* used : {static_cast<OpCache*>(nullptr), &cache}) {
      const std::vector<Tensor> found = one.run(used);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_LT(largest_difference(found[i], expected[i]), 2e-5)
            << one.name() << ", result " << i << ", " << threads << " threads" << (used ? ", cached" : "");
      if (used == nullptr) continue;
      if (first.empty()) first = found;
      for (std::size_t i = 0; i < found.size(); ++i)  // the same bits, whatever the threads
        EXPECT_TRUE(allclose(found[i], first[i], 0, 0)) << one.name() << ", " << threads << " threads";
    }
  }
}

TEST(Recurrent, EqualsPlainLoopsForAllHeightsWidthsDirectionsAndThreads) {
  Generator generator{5};
  for (const std::string kind : {"lstm", "gru", "rnn"}) {
    for (const std::int64_t batch : {1, 2, 3, 4, 7, 13, 25}) {
      for (const std::int64_t hidden : {1, 5, 31, 32, 33, 70}) {
        for (const bool both : {false, true})
          expect_equal_to_loops(RecurrentCase(kind, {3, batch, 6, hidden, 0}, both, generator));
      }
    }
  }
}

TEST(Recurrent, ProjectsWhatItHandsOn) {
  Generator generator{6};
  for (const std::int64_t batch : {1, 13}) {
    for (const std::int64_t projection : {1, 3, 33}) {
      for (const bool both : {false, true})
        expect_equal_to_loops(RecurrentCase("lstm", {4, batch, 6, 40, projection}, both, generator));
    }
  }
}

// More hidden values than lie in a stretch of the packed rows, and enough of them for every thread.
TEST(Recurrent, EqualsPlainLoopsWhereValuesLieInSeveralStretches) {
  Generator generator{7};
  for (const std::string kind : {"lstm", "gru", "rnn"})
    for (const std::int64_t batch : {1, 3})
      expect_equal_to_loops(RecurrentCase(kind, {2, batch, 4, 530, 0}, kind == "rnn", generator));
}

TEST(Recurrent, RefusesDirectionsOfDifferentSizes) {
  Generator generator{8};
  RecurrentCase one("lstm", {2, 2, 4, 8, 0}, true, generator);
  const RecurrentCase other("lstm", {2, 2, 4, 9, 0}, true, generator);
  one.weights.resize(2);
  one.weights[1] = other.weights[1];
  try {
    static_cast<void>(lstm(one.x, one.weights, {}, {}, {.bidirectional = true}));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::shape_mismatch);
  }
}

}  // namespace
}  // namespace ballast
