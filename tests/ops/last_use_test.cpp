// SPDX-License-Identifier: Apache-2.0
// Sums written over a result that nobody holds any more, beside those of operands that are held; and what
// else a convolution's result passes through on its way: its images' order, its bias, pooling, memory used
// again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "ballast/ops.h"
#include "ballast/runtime.h"
#include "ops/memory.h"
#include "ops/native.h"

namespace ballast {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

#if defined(BALLAST_SANITIZED)  // every block comes and goes there, and none is written over
constexpr bool kLends = false;
#else
constexpr bool kLends = true;
#endif

class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(thread_count()) { set_thread_count(count); }

  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

  ~ThreadCount() { set_thread_count(before_); }

 private:
  int before_;
};

std::vector<float> values_of(const Tensor& x) {
  const auto span = x.span<float>();
  return {span.begin(), span.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// By a loop; the bits of NaN are not looked at.
std::vector<float> sum_of(const std::vector<float>& a, const std::vector<float>& b, bool relu) {
  std::vector<float> sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float sum = a[i] + b[i];
    sums.push_back(relu && sum <= 0 ? 0.0F : sum);
  }
  return sums;
}

bool same_values(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
  return true;
}

// Where the values lie.
const void* memory_of(const Tensor& x) {
  const Tensor blocks = ops::blocks_of(x);
  return (blocks.defined() ? blocks : ops::native_view(x)).data();
}

const void* lent(const Tensor& x) {
  const Tensor memory = ops::last_use_of(x);
  return memory.defined() ? memory.data() : nullptr;
}

struct Layer {
  Tensor x;
  Tensor weight;
  std::int64_t stride;

  Tensor operator()() const { return conv(x, weight, {}, {.stride = {stride}, .padding = {1}}); }
};

std::vector<Layer> layers() {
  Generator generator(11);
  std::vector<Layer> all;
  for (const std::int64_t channels : {5, 8, 16, 31})
    for (const std::int64_t batch : {1, 3})
      for (const std::int64_t stride : {1, 2})
        all.push_back({randn({batch, 6, 60 * stride, 61 * stride}, generator),
                       randn({channels, 6, 3, 3}, generator), stride});
  return all;
}

TEST(LastUse, ASumIsWrittenOverAResultThatNobodyElseHoldsAndHasTheBitsOfOneThatIsNot) {
  for (int threads = 1; threads <= 4; ++threads) {
    const ThreadCount count(threads);
    for (const Layer& layer : layers()) {
      SCOPED_TRACE(testing::Message() << to_string(layer.weight.shape()) << " stride " << layer.stride
                                      << ", threads " << threads);
      const Tensor kept = layer();
      const Tensor other = kept * 0.5 - 1.0;
      for (const bool left : {true, false}) {
        for (const bool with_relu : {true, false}) {
          const Activation activation = with_relu ? Activation::Kind::relu : Activation::Kind::none;
          Tensor given = layer();
          const void* memory = memory_of(given);
          const Tensor sum =
              left ? add(std::move(given), other, activation) : add(other, std::move(given), activation);
          EXPECT_EQ(memory_of(sum) == memory, kLends);
          const Tensor apart = left ? add(kept, other, activation) : add(other, kept, activation);
          EXPECT_NE(memory_of(apart), memory_of(kept));
          EXPECT_TRUE(same_bits(values_of(sum), values_of(apart)));
          EXPECT_TRUE(same_bits(values_of(sum), sum_of(values_of(kept), values_of(other), with_relu)));
        }
      }
    }
  }
}

TEST(LastUse, NotANumberInfinityAndOverflowAreWhatALoopMakesOfThem) {
  const Layer layer = layers().front();
  constexpr std::array kValues = {kNan, kInfinity, -kInfinity, 3e38F, -3e38F, 0.0F, -0.0F};
  for (const float a : kValues) {
    for (const float b : kValues) {
      const Tensor x = layer() * 0.0 + static_cast<double>(a);
      const Tensor y = layer() * 0.0 + static_cast<double>(b);
      const std::vector<float> expected = sum_of(values_of(x), values_of(y), true);
      EXPECT_TRUE(same_values(values_of(add(x * 1.0, y, Activation::Kind::relu)), expected))
          << a << ", " << b;
      EXPECT_TRUE(same_values(values_of(add(x, y * 1.0, Activation::Kind::relu)), expected))
          << a << ", " << b;
    }
  }
}

// Everything that can look at a result beside the one who gives it up.
TEST(LastUse, NothingIsWrittenOverThatSomebodyStillLooksAt) {
  for (const Layer& layer : layers()) {
    SCOPED_TRACE(to_string(layer.weight.shape()));
    const std::vector<float> before = values_of(layer());
    const Tensor other = layer() * 2.0;
    const auto after = [&](Tensor given) { static_cast<void>(add(std::move(given), other).data()); };

    const Tensor held = layer();
    after(held);
    EXPECT_TRUE(same_bits(values_of(held), before)) << "a copy of the tensor";

    Tensor source = layer();
    const Tensor view = source.narrow(0, 0, 1).transpose(2, 3);
    const std::vector<float> seen = values_of(view.contiguous());
    after(std::move(source));
    EXPECT_TRUE(same_bits(values_of(view.contiguous()), seen)) << "a view";

    Tensor kept = layer();
    const Tensor native = ops::native_view(kept);
    const std::vector<float> lies = values_of(native.contiguous());
    after(std::move(kept));
    EXPECT_TRUE(same_bits(values_of(native.contiguous()), lies)) << "its memory";

    const Operand operand = layer();
    static_cast<void>(add(operand, other).data());
    EXPECT_TRUE(same_bits(values_of(operand.tensor()), before)) << "an operand that is used again";

    const Tensor twice = layer();
    EXPECT_TRUE(same_bits(values_of(twice + twice), sum_of(before, before, false))) << "both sides";
    EXPECT_TRUE(same_bits(values_of(twice), before)) << "both sides";
  }
}

TEST(LastUse, MemoryOfTheCallerIsNeverWrittenOver) {
  std::vector<float> mine(1 << 16, 1.0F);
  const auto borrowed = [&] {
    return Tensor::contiguous_view(DType::f32, {1 << 16},
                                   Storage::borrow(mine.data(), mine.size() * sizeof(float)));
  };
  EXPECT_EQ(lent(borrowed()), nullptr);
  static_cast<void>((borrowed() + 1.0).data());
  EXPECT_EQ(mine, std::vector<float>(1 << 16, 1.0F));
  // Images with channels last in the caller's memory, which a resize that changes nothing hands on.
  const auto image = [&] {
    return resize(borrowed().reshape({1, 64, 64, 16}).permute({0, 3, 1, 2}), {.size = {64, 64}});
  };
  EXPECT_EQ(lent(image()), nullptr);
  static_cast<void>((image() + 1.0).data());
  EXPECT_EQ(mine, std::vector<float>(1 << 16, 1.0F));
}

TEST(LastUse, AnOperandThatIsSpreadOverAnotherLendsNothing) {
  const Tensor row = arange(0, 1 << 15).to(DType::f32);
  const Tensor column = arange(0, 3).to(DType::f32).reshape({3, 1});
  const Tensor sum = (row * 1.0) + column;
  const Tensor apart = row + column;
  EXPECT_TRUE(same_bits(values_of(sum), values_of(apart)));
  EXPECT_EQ(sum.shape(), Shape({3, 1 << 15}));
}

TEST(FewChannels, ImagesGoToChannelsLastAsAnyPermutationDoes) {
  Generator generator(5);
  for (std::int64_t channels = 1; channels <= 6; ++channels) {
    for (const std::int64_t batch : {1, 3}) {
      for (const Shape& size : {Shape{1, 1}, Shape{7, 5}, Shape{64, 65}, Shape{200, 101}, Shape{4, 5, 3}}) {
        Shape shape = {batch, channels};
        for (const std::int64_t each : size) shape.push_back(each);
        const Tensor x = randn(shape, generator);
        const Tensor y = ops::to_channels_last(x);
        EXPECT_TRUE(ops::is_channels_last(y, true));
        EXPECT_TRUE(same_bits(values_of(y.contiguous()), values_of(x))) << to_string(shape);
      }
    }
  }
}

// [batch, out, height, width] by its definition, in F64.
std::vector<double> transposed_by_definition(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                             std::int64_t stride, std::int64_t groups) {
  const std::int64_t ins = x.shape()[1] / groups;
  const std::int64_t outs = weight.shape()[1];
  const std::int64_t k = weight.shape()[2];
  const std::int64_t h = x.shape()[2];
  const std::int64_t w = x.shape()[3];
  const std::int64_t height = (h - 1) * stride + k;
  const std::int64_t width = (w - 1) * stride + k;
  std::vector<double> out(static_cast<std::size_t>(x.shape()[0] * outs * groups * height * width));
  const auto at = [&](std::int64_t n, std::int64_t o, std::int64_t row, std::int64_t column) -> double& {
    return out[static_cast<std::size_t>(((n * outs * groups + o) * height + row) * width + column)];
  };
  for (std::int64_t n = 0; n < x.shape()[0]; ++n)
    for (std::int64_t o = 0; o < outs * groups; ++o)
      for (std::int64_t i = 0; i < height * width; ++i) at(n, o, i / width, i % width) = bias[o].item();
  const auto from = x.span<float>();
  const auto by = weight.span<float>();
  for (std::int64_t n = 0; n < x.shape()[0]; ++n)
    for (std::int64_t i = 0; i < x.shape()[1]; ++i)
      for (std::int64_t o = 0; o < outs; ++o)
        for (std::int64_t p = 0; p < h * w * k * k; ++p) {
          const std::int64_t pixel = p / (k * k);
          const std::int64_t tap = p % (k * k);
          at(n, i / ins * outs + o, pixel / w * stride + tap / k, pixel % w * stride + tap % k) +=
              static_cast<double>(from[static_cast<std::size_t>((n * x.shape()[1] + i) * h * w + pixel)]) *
              static_cast<double>(by[static_cast<std::size_t>((i * outs + o) * k * k + tap)]);
        }
  return out;
}

TEST(TransposedConvolution, TheBiasAndTheActivationAreThoseOfTheDefinition) {
  Generator generator(9);
  for (const std::int64_t outs : {1, 3, 8, 16, 17, 32})
    for (const std::int64_t groups : {1, 2})
      for (const std::int64_t batch : {1, 3})
        for (const std::int64_t kernel : {2, 3})
          for (const auto kind :
               {Activation::Kind::none, Activation::Kind::relu, Activation::Kind::leaky_relu}) {
            const Tensor x = randn({batch, 4, 9, 7}, generator);
            const Tensor weight = randn({4, outs, kernel, kernel}, generator);
            const Tensor bias = randn({outs * groups}, generator);
            OpCache cache;
            const Activation activation{kind};
            const Tensor y =
                conv_transpose(x, weight, bias,
                               {.stride = {2}, .groups = groups, .activation = activation, .cache = &cache});
            const std::vector<double> expected = transposed_by_definition(x, weight, bias, 2, groups);
            ASSERT_EQ(static_cast<std::size_t>(y.numel()), expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i) {
              const double below = kind == Activation::Kind::none   ? 1
                                   : kind == Activation::Kind::relu ? 0
                                                                    : activation.number();
              const double value = expected[i] < 0 ? expected[i] * below : expected[i];
              ASSERT_NEAR(y.span<float>()[i], value, 2e-5)
                  << outs << " outputs, " << groups << " groups, kernel " << kernel;
            }
          }
}

#if !defined(BALLAST_SANITIZED)
TEST(Memory, OfAResultLargerThanAHundredMegabytesServesTheNextOne) {
  constexpr std::int64_t kElements = 40 << 20;  // 160 MiB, never touched
  const auto machine =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (machine / 16 < kElements * sizeof(float)) GTEST_SKIP() << "the machine is too small to keep so much";
  EXPECT_TRUE(is_pooled_result(*ops::new_floats({kElements}).storage()));
  const void* first = ops::new_floats({kElements}).data();
  EXPECT_EQ(ops::new_floats({kElements}).data(), first);
}
#endif

}  // namespace
}  // namespace ballast
