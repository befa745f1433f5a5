// SPDX-License-Identifier: Apache-2.0
// Models on several threads at once; run under ThreadSanitizer too (preset tsan).
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/runtime.h"
#include "ops/cases.h"

namespace ballast {
namespace {

struct Net {
  nn::Sequential<nn::Conv2d, nn::BatchNorm2d, nn::ReLU, nn::MaxPool2d> stem{
      {3, 16, 3, {.padding = 1}}, {16}, {}, {2}};
  nn::Linear widen{16 * 8 * 8, 64};
  nn::TransformerEncoderLayer encoder{64, 4, {.dim_feedforward = 96, .batch_first = true}};
  nn::LSTM lstm{64, 32, {.batch_first = true, .bidirectional = true}};
  nn::Linear head{64, 5};

  Tensor forward(const Tensor& images) const {
    const Tensor rows = widen.forward(flatten(stem.forward(images)), Activation::Kind::gelu);
    const Tensor sequence = encoder.forward(rows.reshape({1, -1, 64}));
    return softmax(head.forward(lstm.forward(sequence).output));
  }
};

Net made(std::uint64_t seed) {
  Net net;
  init(net, seed);
  return net;
}

Tensor images(std::uint64_t seed, std::int64_t count = 6) {
  Generator generator(seed);
  return randn({count, 3, 16, 16}, generator);
}

class ThreadCount {
 public:
  explicit ThreadCount(int count) : saved_(thread_count()) { set_thread_count(count); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() { set_thread_count(saved_); }

 private:
  int saved_;
};

template <class Work>
void on_two_threads(const Work& work) {
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
}

TEST(Threads, TwoModelsOnTwoThreadsDoNotDisturbEachOther) {
  for (const int count : {1, 2}) {
    const ThreadCount threads(count);
    const Net nets[2] = {made(1), made(2)};
    const Tensor inputs[2] = {images(3), images(4)};
    const Tensor expected[2] = {made(1).forward(inputs[0]), made(2).forward(inputs[1])};
    double errors[2] = {};
    const auto work = [&](std::size_t i) {
      for (int round = 0; round < 8; ++round)
        errors[i] = std::max(errors[i], ops_tests::error_of(nets[i].forward(inputs[i]), expected[i]));
    };
    on_two_threads(work);
    EXPECT_LE(errors[0], 1e-6);
    EXPECT_LE(errors[1], 1e-6);
  }
}

TEST(Threads, OneModelServesTwoThreads) {
  const ThreadCount threads(1);
  const Net net = made(5);
  const Tensor inputs[2] = {images(6, 4), images(7, 8)};  // other shapes: other kernels in the same caches
  const Net other = made(5);
  const Tensor expected[2] = {other.forward(inputs[0]), other.forward(inputs[1])};
  double errors[2] = {};
  const auto work = [&](std::size_t i) {
    for (int round = 0; round < 8; ++round)
      errors[i] = std::max(errors[i], ops_tests::error_of(net.forward(inputs[i]), expected[i]));
  };
  on_two_threads(work);
  EXPECT_LE(errors[0], 1e-6);
  EXPECT_LE(errors[1], 1e-6);
}

TEST(Threads, TheResultDoesNotDependOnTheirNumber) {
  const Net net = made(8);
  const Tensor input = images(9);
  Tensor one;
  {
    const ThreadCount threads(1);
    one = net.forward(input);
  }
  const ThreadCount threads(3);
  EXPECT_LE(ops_tests::error_of(net.forward(input), one), 1e-6);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous();
  const Tensor y = b.contiguous();
  return x.shape() == y.shape() && std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
}

TEST(Threads, ManyCallersOfOneModelComputeTheSameBits) {
  for (const int count : {1, 2, 3, 4}) {
    const ThreadCount threads(count);
    const Net net = made(10);
    const Tensor inputs[3] = {images(11, 1), images(12, 6), images(13, 9)};
    const Tensor expected[3] = {net.forward(inputs[0]), net.forward(inputs[1]), net.forward(inputs[2])};
    std::atomic<int> different = 0;
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < 8; ++caller) {
      callers.emplace_back([&, caller] {
        for (std::size_t round = 0; round < 6; ++round) {
          const std::size_t i = (caller + round) % 3;
          if (!same_bits(net.forward(inputs[i]), expected[i])) ++different;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(different, 0) << count << " threads";
  }
}

TEST(Threads, ANumberOfThreadsGivesItsBitsAgainAfterAnyOther) {
  const Net net = made(14);
  const Tensor input = images(15);
  std::map<int, Tensor> first;
  for (const int count : {4, 1, 3, 4, 2, 1, 8, 3, 2, 4, 8, 1}) {
    const ThreadCount threads(count);
    const Tensor now = net.forward(input);
    const auto [found, fresh] = first.try_emplace(count, now);
    EXPECT_TRUE(fresh || same_bits(now, found->second)) << count;
    EXPECT_LE(ops_tests::error_of(now, first.at(4)), 1e-6) << count;
  }
}

TEST(Threads, NoThreadsAreRefused) {
  EXPECT_THROW(set_thread_count(0), Error);
}

}  // namespace
}  // namespace ballast
