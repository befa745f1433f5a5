// SPDX-License-Identifier: Apache-2.0
// What a trace takes an operation's results for is what the operation returns.
#include "ops/forms.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <set>

#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "ops/counting.h"
#include "ops/operations.h"
#include "tensor/trace.h"

namespace ballast::graph {
namespace {

using ops::Forms;

// Runs every operation, and compares what it returns with what was told before.
class Comparing final : public tracing::Recorder {
 public:
  std::vector<Tensor> record(const Operation& row, std::span<const Tensor> inputs, Attributes attributes,
                             const tracing::Run& run) override {
    const tracing::Aside aside;
    const char* op = row.name;
    std::optional<Forms> told;
    bool refused = false;
    try {
      if (row.form != nullptr) told = row.form({row, inputs, attributes});
    } catch (const Error&) {
      refused = true;
    }
    std::vector<Tensor> made;
    try {
      made = run();
    } catch (const Error&) {
      EXPECT_FALSE(told) << op << " takes no such operands";
      throw;
    }
    EXPECT_FALSE(refused) << op << " does take these operands";
    if (told) compare(row, *told, made);
    return made;
  }

  void enter(const std::string&, const char*) override {}

  void leave() noexcept override {}

  std::set<const Operation*> compared;
  int count = 0;

 private:
  void compare(const Operation& row, const Forms& told, const std::vector<Tensor>& made) {
    const char* op = row.name;
    ++count;
    compared.insert(&row);
    ASSERT_EQ(told.size(), made.size()) << op;
    for (std::size_t i = 0; i < told.size(); ++i) {
      ASSERT_EQ(told[i].defined(), made[i].defined()) << op;
      if (!made[i].defined()) continue;
      EXPECT_EQ(told[i].dtype(), made[i].dtype()) << op << " " << i;
      if (operations::counts_values(row))
        EXPECT_LE(made[i].shape()[0], told[i].shape()[0]) << op;
      else
        EXPECT_EQ(told[i].shape(), made[i].shape()) << op << " " << i;
    }
  }
};

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16, DType::f64,
                                    DType::i64, DType::i32, DType::u8,   DType::boolean};

class Each {
 public:
  explicit Each(Comparing& comparing) : comparing_(comparing) {}

  // Operations may refuse what they are given: then nothing must have been told.
  template <class Work>
  void operator()(const Work& work) const {
    tracing::recorder = &comparing_;
    try {
      static_cast<void>(work());
    } catch (const Error&) {
      static_cast<void>(0);
    }
    tracing::recorder = nullptr;
  }

 private:
  Comparing& comparing_;
};

Tensor made(DType dtype, const Shape& shape) {
  return Tensor::zeros(dtype, shape);
}

void go_through_pairs(const Each& each) {
  const Shape shapes[] = {{}, {3}, {2, 4, 1}, {0, 3}};
  for (const DType a : kDtypes) {
    for (const DType b : kDtypes) {
      for (const Shape& x : shapes) {
        for (const Shape& y : shapes) {
          const Tensor p = made(a, x);
          const Tensor q = made(b, y);
          for (const auto op : {sub, mul, div, pow, minimum, maximum, atan2, eq, ne, lt, le, gt, ge,
                                logical_and, logical_or, logical_xor})
            each([&] { return op(p, q); });
          each([&] { return p + q; });
          each([&] { return remainder(p, ones(y, b)); });  // of 0 it is refused
          each([&] { return where(ne(p, 0), p, q); });
        }
      }
    }
    for (const Shape& x : shapes) {
      each([&] { return made(a, x) * 2; });
      each([&] { return made(a, x) * 2.5; });
      each([&] { return made(a, x) + true; });
      each([&] { return where(made(DType::boolean, {3}), made(a, x), 1.5); });
    }
  }
}

void go_through_alone(const Each& each) {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {
      neg,      abs,   sign,      square,      exp,   expm1,   log,         log1p,      sqrt,
      rsqrt,    sin,   cos,       tan,         erf,   floor,   ceil,        round,      trunc,
      relu,     relu6, gelu,      gelu_tanh,   silu,  sigmoid, tanh,        mish,       log_sigmoid,
      softsign, selu,  hardswish, hardsigmoid, isnan, isinf,   logical_not, reciprocal, log2};
  for (const DType dtype : kDtypes) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 4}, Shape{2, 3, 5}, Shape{2, 0, 5}}) {
      const Tensor x = made(dtype, shape);
      for (const Function function : functions) each([&] { return function(x); });
      each([&] { return clamp(x, 0, 1); });
      for (const DType to : kDtypes) each([&] { return x.to(to); });
      each([&] { return x.permute({}).clone(); });
      each([&] { return softplus(x); });
      each([&] { return elu(x); });
      each([&] { return leaky_relu(x); });
      each([&] { return hardtanh(x); });
      for (const Shape& to : {Shape{-1}, Shape{2, -1}, Shape{5, 6}, Shape{8}, Shape{7}})
        each([&] { return x.reshape(to); });
      for (const std::int64_t dim : {-1, 0, 1, 2}) {
        each([&] { return softmax(x, dim); });
        each([&] { return log_softmax(x, dim); });
        each([&] { return cumsum(x, dim); });
        each([&] { return cumprod(x, dim); });
        each([&] { return sort(x, dim).values; });
        each([&] { return topk(x, 2, dim).indices; });
        each([&] { return concat({x, x, x}, dim); });
        each([&] { return concat({x, made(dtype, {2, 3, 4})}, dim); });
        each([&] { return index_select(x, dim, made(DType::i64, {4})); });
        each([&] { return gather(x, dim, made(DType::i64, {2, 1})); });
        each([&] { return scatter(x, dim, made(DType::i64, {2, 1}), 1.0); });
        each([&] { return scatter_add(x, dim, made(DType::i64, {2, 1}), made(dtype, {2, 1})); });
        each([&] { return scatter_add(x, dim, made(DType::i64, shape), x); });
        for (const bool keep : {false, true}) {
          for (const auto op : {sum, prod, mean, max, min, logsumexp, any, all})
            each([&] { return op(x, {dim}, keep); });
          each([&] { return argmax(x, dim, keep); });
          each([&] { return var(x, {dim}, keep); });
          each([&] { return stddev(x, {dim}, keep); });
          each([&] { return norm(x, 2, {dim}, keep); });
        }
      }
      for (const auto op : {sum, mean, max, all}) each([&] { return op(x, {}, false); });
      each([&] { return argmin(x); });
      each([&] { return tril(x); });
      each([&] { return triu(x, 1); });
      each([&] { return one_hot(x, 3); });
      each([&] { return embedding(x, made(DType::f32, {4, 6})); });
      for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular})
        for (const Dims& amounts :
             {Dims{1, 2}, Dims{0, 0, 3, 1}, Dims{-1, 0}, Dims{9, 0}, Dims{-9, 1}, Dims{1}})
          each([&] { return pad(x, amounts, mode); });
    }
  }
}

void go_through_layers(const Each& each) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64}) {
    for (const std::int64_t height : {0, 1, 2, 5, 8, 9}) {
      const Tensor image = made(dtype, {2, 4, height, 7});
      for (const std::int64_t stride : {1, 2, 3}) {
        for (const std::int64_t padding : {0, 1}) {
          const Tensor w = made(DType::f32, {6, 4, 3, 3});
          each([&] {
            return conv(image, w, {}, {.stride = {stride}, .padding = {padding}, .dilation = {2, 1}});
          });
          each([&] {
            return conv_transpose(image, made(DType::f32, {4, 3, 3, 3}), made(DType::f32, {3}),
                                  {.stride = {stride}, .padding = {padding}});
          });
          for (const DType other : {DType::f64, DType::f16, DType::i64}) {
            each([&] { return conv(image, w.to(other)); });
            each([&] { return conv(image, w, made(other, {6})); });
            each([&] { return conv_transpose(image, made(other, {4, 3, 3, 3})); });
          }
          for (const bool up : {false, true}) {
            each([&] {
              return max_pool_with_indices(image, {3, 2},
                                           {.stride = {stride}, .padding = {padding}, .ceil_mode = up})
                  .indices;
            });
            each([&] {
              return max_pool(image, {3, 2}, {.stride = {stride}, .padding = {padding}, .ceil_mode = up});
            });
            each([&] {
              return avg_pool(image, {3, 2}, {.stride = {stride}, .padding = {padding}, .ceil_mode = up});
            });
          }
        }
      }
      each([&] { return adaptive_avg_pool(image, {3, -1}); });
      each([&] { return adaptive_max_pool(image, {1, 1}); });
      each([&] { return resize(image, {.scale = {1.3}, .mode = ResizeMode::linear}); });
      each([&] { return resize(image, {.size = {3, 9}}); });
      each([&] { return resize(image, {.scale = {0.1}}); });
      each([&] { return group_norm(image, 2); });
      each([&] { return group_norm(image, 3); });
      each([&] { return instance_norm(image, made(DType::f32, {4})); });
      each([&] { return batch_norm(image, made(DType::f32, {4}), ones({4})); });
      each([&] { return batch_norm(image, made(DType::f32, {3}), ones({3})); });
      each([&] { return layer_norm(image, {height, 7}); });
      each([&] { return layer_norm(image, {7}, made(DType::f32, {7}), made(DType::f32, {6})); });
      each([&] { return rms_norm(image, {7}, made(DType::f32, {7})); });
      each([&] { return linear(image, made(DType::f32, {7, 3}), made(DType::f32, {3})); });
      each([&] { return linear(image, made(DType::f32, {6, 3})); });
      for (const DType other : {DType::f64, DType::f16, DType::i64}) {
        each([&] { return linear(image, made(other, {7, 3})); });
        each([&] { return linear(image, made(DType::f32, {7, 3}), made(other, {3})); });
      }
      for (const Shape& other : {Shape{7}, Shape{7, 2}, Shape{4, 7, 2}, Shape{2, 1, 7, 3}, Shape{5, 7, 2}})
        each([&] { return matmul(image, made(dtype, other)); });
      each([&] { return matmul(made(dtype, {height}), image); });
      const Tensor key = made(dtype, {2, 1, 3, 7});
      each([&] { return scaled_dot_product_attention(image, key, key); });
      each([&] {
        return scaled_dot_product_attention(image, key, key, {.mask = made(DType::f32, {height, 3})});
      });
      each([&] {
        return scaled_dot_product_attention(image, key, key, {.mask = made(DType::boolean, {4, 2})});
      });
      each([&] { return prelu(image, made(DType::f32, {4})); });
      for (const Shape& grid : {Shape{2, 3, 5, 2}, Shape{2, 3, 5, 3}, Shape{1, 3, 5, 2}, Shape{2, 0, 5, 2}})
        each([&] { return grid_sample(image, made(dtype, grid)); });
      each([&] { return grid_sample(image, made(DType::f32, {2, 3, 5, 2})); });
      for (const Shape& boxes : {Shape{3, 5}, Shape{0, 5}, Shape{3, 4}})
        each([&] { return roi_align(image, made(dtype, boxes), {.output_size = {2, 3}}); });
      each([&] { return roi_align(image, made(DType::f32, {3, 5})); });
      each([&] { return nonzero(image); });
      for (const Shape& boxes : {Shape{3, 4}, Shape{0, 4}, Shape{3, 5}})
        each([&] { return nms(made(dtype, boxes), made(DType::f32, {boxes[0]}), 0.5); });
      each([&] { return nms(made(dtype, {3, 4}), made(dtype, {2}), 0.5); });
      each([&] { return batched_nms(made(DType::f32, {3, 4}), made(dtype, {3}), made(dtype, {3}), 0.5); });
      each([&] { return roi_align(image, made(dtype, {3, 5}), {.output_size = {0}}); });
      each([&] { return roi_align(image, made(dtype, {3, 5}), {.spatial_scale = NAN}); });
      each([&] { return rfft(image); });
      each([&] { return fft(image); });
      each([&] { return ifft(made(dtype, {3, height, 2})); });
    }
  }
}

void go_through_recurrent(const Each& each) {
  for (const bool both : {false, true}) {
    for (const bool first : {false, true}) {
      for (const std::int64_t layers : {1, 2}) {
        nn::LSTM lstm(4, 3, {.num_layers = layers, .batch_first = first, .bidirectional = both});
        nn::GRU gru(4, 3, {.num_layers = layers, .batch_first = first, .bidirectional = both});
        nn::RNN rnn(4, 3, {.num_layers = layers, .batch_first = first, .bidirectional = both});
        init(lstm);
        init(gru);
        init(rnn);
        for (const Shape& shape :
             {Shape{5, 2, 4}, Shape{1, 1, 4}, Shape{5, 4}, Shape{5, 2, 3}, Shape{0, 2, 4}}) {
          const Tensor x = made(DType::f32, shape);
          each([&] { return lstm.forward(x).output; });
          each([&] { return gru.forward(x).output; });
          each([&] { return rnn.forward(x).output; });
          each([&] { return gru.forward(x, made(DType::f32, {layers * (both ? 2 : 1), 2, 3})).output; });
        }
      }
    }
  }
}

TEST(Forms, AreWhatEveryOperationReturnsAndRefusalsItsOwn) {
  Comparing comparing;
  const Each each(comparing);
  go_through_pairs(each);
  go_through_alone(each);
  go_through_layers(each);
  go_through_recurrent(each);
  EXPECT_GT(comparing.count, 10000);
  for (const Operation* row : operations::table())
    EXPECT_EQ(comparing.compared.contains(row), row->form != nullptr) << row->name;
}

}  // namespace
}  // namespace ballast::graph
