// SPDX-License-Identifier: Apache-2.0
// Models on several threads at once; run under ThreadSanitizer too (preset tsan).
#include "ballast/threads.h"

#include <gtest/gtest.h>

#include <thread>

#include "ballast/init.h"
#include "ballast/nn.h"
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

TEST(Threads, NoThreadsAreRefused) {
  EXPECT_THROW(set_thread_count(0), Error);
}

}  // namespace
}  // namespace ballast
