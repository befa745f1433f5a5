// SPDX-License-Identifier: Apache-2.0
// Arguments that make no sense are refused, with the operation's name and both shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "ballast/error.h"
#include "ballast/ops.h"

namespace ballast {
namespace {

using testing::HasSubstr;

struct Refusal {
  const char* name;
  std::function<Tensor()> call;
  Errc code;
  std::vector<std::string> says;
};

class Refuses : public testing::TestWithParam<Refusal> {};

TEST_P(Refuses, WithTheNumbers) {
  try {
    static_cast<void>(GetParam().call());
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(GetParam().code)) << error.what();
    for (const std::string& part : GetParam().says) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

Tensor f32(const Shape& shape) {
  return zeros(shape);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Refuses,
    testing::Values(
        Refusal{"AddShapes",
                [] {
                  return add(f32({2, 3}), f32({4}));
                },
                Errc::shape_mismatch,
                {"add", "[2, 3]", "[4]"}},
        Refusal{"AddUndefined",
                [] { return add(f32({2}), Tensor()); },
                Errc::invalid_argument,
                {"add", "undefined"}},
        Refusal{"AddComplex",
                [] { return add(f32({2}), zeros({2}, DType::c64)); },
                Errc::bad_dtype,
                {"add", "C64"}},
        Refusal{"SubBool",
                [] { return sub(zeros({2}, DType::boolean), zeros({2}, DType::boolean)); },
                Errc::bad_dtype,
                {"sub", "BOOL"}},
        Refusal{"UnloadedOperand",
                [] { return add(f32({2}), Tensor(DType::f32, {2})); },
                Errc::invalid_argument,
                {"not loaded"}},
        Refusal{"WhereCondition",
                [] { return where(f32({2}), 1.0, 2.0); },
                Errc::bad_dtype,
                {"where", "F32 [2]"}},
        Refusal{"GeluOfIntegers",
                [] { return gelu(zeros({2}, DType::i64)); },
                Errc::bad_dtype,
                {"gelu", "I64 [2]"}},
        Refusal{"Softmax",
                [] {
                  return softmax(f32({2, 3}), 2);
                },
                Errc::shape_mismatch,
                {"softmax", "[2, 3]", "2"}},
        Refusal{"PreluChannels",
                [] {
                  return prelu(f32({2, 3}), f32({2}));
                },
                Errc::shape_mismatch,
                {"prelu", "[2]", "[2, 3]"}},
        Refusal{"Matmul",
                [] {
                  return matmul(f32({2, 3}), f32({4, 5}));
                },
                Errc::shape_mismatch,
                {"matmul", "[2, 3]", "[4, 5]"}},
        Refusal{"MatmulBatch",
                [] {
                  return matmul(f32({2, 3, 4}), f32({3, 4, 5}));
                },
                Errc::shape_mismatch,
                {"matmul", "[2]", "[3]"}},
        Refusal{"MatmulDtypes",
                [] {
                  return matmul(f32({2, 2}), zeros({2, 2}, DType::f16));
                },
                Errc::bad_dtype,
                {"matmul", "F32 [2, 2]", "F16 [2, 2]"}},
        Refusal{"MatmulI64",
                [] {
                  return matmul(zeros({2, 2}, DType::i64), zeros({2, 2}, DType::i64));
                },
                Errc::bad_dtype,
                {"matmul", "I64 [2, 2]"}},
        Refusal{"Linear",
                [] {
                  return linear(f32({2, 3}), f32({4, 5}));
                },
                Errc::shape_mismatch,
                {"linear", "[2, 3]", "[4, 5]"}},
        Refusal{"LinearBias",
                [] {
                  return linear(f32({2, 4}), f32({4, 5}), f32({4}));
                },
                Errc::shape_mismatch,
                {"linear", "bias", "[4]", "[5]"}},
        Refusal{"ConvChannels",
                [] {
                  return conv(f32({1, 3, 8, 8}), f32({4, 2, 3, 3}));
                },
                Errc::shape_mismatch,
                {"conv", "[1, 3, 8, 8]", "[4, 2, 3, 3]"}},
        Refusal{"ConvKernel",
                [] {
                  return conv(f32({1, 2, 2, 2}), f32({4, 2, 3, 3}));
                },
                Errc::shape_mismatch,
                {"conv", "[1, 2, 2, 2]", "[4, 2, 3, 3]"}},
        Refusal{"ConvRank",
                [] {
                  return conv(f32({8, 8}), f32({4, 2, 3, 3}));
                },
                Errc::shape_mismatch,
                {"conv", "[8, 8]"}},
        Refusal{"ConvGroups",
                [] {
                  return conv(f32({1, 2, 8, 8}), f32({3, 1, 3, 3}), {}, {.groups = 2});
                },
                Errc::shape_mismatch,
                {"conv", "2 groups"}},
        Refusal{"ConvStride",
                [] {
                  return conv(f32({1, 2, 8, 8}), f32({3, 2, 3, 3}), {}, {.stride = {0}});
                },
                Errc::invalid_argument,
                {"conv", "stride [0]"}},
        Refusal{"ConvHugePadding",
                [] {
                  return conv(f32({1, 2, 8, 8}), f32({3, 2, 3, 3}), {}, {.padding = {INT64_MAX}});
                },
                Errc::invalid_argument,
                {"conv", "padding"}},
        Refusal{"ConvSameStride",
                [] {
                  return conv(f32({1, 2, 8, 8}), f32({3, 2, 3, 3}), {}, {.stride = {2}, .same = true});
                },
                Errc::invalid_argument,
                {"same"}},
        Refusal{"ConvBias",
                [] {
                  return conv(f32({1, 2, 8, 8}), f32({3, 2, 3, 3}), f32({2}));
                },
                Errc::shape_mismatch,
                {"conv", "bias", "[2]", "[3]"}},
        Refusal{"ConvF64Weight",
                [] {
                  return conv(f32({1, 2, 8, 8}), zeros({3, 2, 3, 3}, DType::f64));
                },
                Errc::bad_dtype,
                {"conv", "F64"}},
        Refusal{"ConvTransposeOutputPadding",
                [] {
                  return conv_transpose(f32({1, 2, 4, 4}), f32({2, 3, 3, 3}), {}, {.output_padding = {1}});
                },
                Errc::invalid_argument,
                {"conv_transpose", "output_padding"}},
        Refusal{"PoolKernel",
                [] {
                  return max_pool(f32({1, 2, 2, 2}), {3, 3});
                },
                Errc::shape_mismatch,
                {"max_pool", "3", "2"}},
        Refusal{"PoolPadding",
                [] {
                  return max_pool(f32({1, 2, 8, 8}), {3, 3}, {.padding = {2}});
                },
                Errc::invalid_argument,
                {"max_pool", "half"}},
        Refusal{"PoolRank",
                [] {
                  return avg_pool(f32({8, 8}), {3, 3});
                },
                Errc::shape_mismatch,
                {"avg_pool", "[8, 8]"}},
        Refusal{"BatchNorm",
                [] {
                  return batch_norm(f32({1, 3, 2}), f32({2}), f32({2}));
                },
                Errc::shape_mismatch,
                {"batch_norm", "[2]", "[3]"}},
        Refusal{"LayerNorm",
                [] {
                  return layer_norm(f32({2, 3}), {4});
                },
                Errc::shape_mismatch,
                {"layer_norm", "[2, 3]", "[4]"}},
        Refusal{"GroupNorm",
                [] {
                  return group_norm(f32({2, 3, 4}), 2);
                },
                Errc::shape_mismatch,
                {"group_norm", "[2, 3, 4]", "2"}},
        Refusal{"Embedding",
                [] {
                  return embedding(Tensor::from<std::int64_t>({3, 7}, {2}), f32({5, 4}));
                },
                Errc::offset_out_of_range,
                {"embedding", "7", "5"}},
        Refusal{"EmbeddingFloats",
                [] {
                  return embedding(f32({2}), f32({5, 4}));
                },
                Errc::bad_dtype,
                {"embedding", "F32 [2]"}},
        Refusal{"EmbeddingNegative",
                [] {
                  return embedding(Tensor::from<std::int64_t>({-1}, {1}), f32({5, 4}));
                },
                Errc::offset_out_of_range,
                {"embedding", "-1"}},
        Refusal{"Concat",
                [] {
                  return concat({f32({2, 3}), f32({2, 4})}, 0);
                },
                Errc::shape_mismatch,
                {"concat", "[2, 3]", "[2, 4]"}},
        Refusal{"ConcatDtypes",
                [] {
                  return concat({f32({2, 3}), zeros({2, 3}, DType::f16)}, 0);
                },
                Errc::bad_dtype,
                {"concat", "F32", "F16"}},
        Refusal{"Stack",
                [] {
                  return stack({f32({2}), f32({3})});
                },
                Errc::shape_mismatch,
                {"stack", "[2]", "[3]"}},
        Refusal{"Split",
                [] {
                  return split(f32({4}), Dims{1, 2}, 0)[0];
                },
                Errc::shape_mismatch,
                {"split", "[1, 2]", "[4]"}},
        Refusal{"Pad",
                [] {
                  return pad(f32({2, 3}), {3, 0}, PadMode::reflect);
                },
                Errc::shape_mismatch,
                {"pad", "[2, 3]", "3"}},
        Refusal{"Gather",
                [] {
                  return gather(f32({2, 3}), 0, zeros({2}, DType::i64));
                },
                Errc::shape_mismatch,
                {"gather", "[2]", "[2, 3]"}},
        Refusal{"MaxOfNothing",
                [] {
                  return max(f32({2, 0}), {1});
                },
                Errc::shape_mismatch,
                {"max", "[2, 0]"}},
        Refusal{"MeanOfIntegers",
                [] { return mean(zeros({2}, DType::i64)); },
                Errc::bad_dtype,
                {"mean", "I64 [2]"}},
        Refusal{"TwiceTheSameDim",
                [] {
                  return sum(f32({2, 3}), {1, -1});
                },
                Errc::invalid_argument,
                {"sum", "1"}},
        Refusal{"TopK",
                [] {
                  return topk(f32({2, 3}), 4).values;
                },
                Errc::shape_mismatch,
                {"topk", "[2, 3]", "4"}},
        Refusal{"Resize",
                [] {
                  return resize(f32({1, 1, 4}), {.size = {2, 2}});
                },
                Errc::shape_mismatch,
                {"resize", "[2, 2]"}},
        Refusal{"Attention",
                [] {
                  return scaled_dot_product_attention(f32({2, 3}), f32({4, 5}), f32({4, 5}));
                },
                Errc::shape_mismatch,
                {"[2, 3]", "[4, 5]"}},
        Refusal{"AttentionMask",
                [] {
                  return scaled_dot_product_attention(f32({2, 3}), f32({4, 3}), f32({4, 5}),
                                                      {.mask = f32({3, 4})});
                },
                Errc::shape_mismatch,
                {"[3, 4]"}},
        Refusal{
            "Lstm",
            [] {
              return lstm(f32({2, 1, 3}), std::vector<RecurrentWeights>{{f32({4, 8}), f32({2, 8})}}).output;
            },
            Errc::shape_mismatch,
            {"lstm", "[2, 1, 3]", "[4, 8]"}},
        Refusal{"LstmState",
                [] {
                  return lstm(f32({2, 1, 4}), std::vector<RecurrentWeights>{{f32({4, 8}), f32({2, 8})}},
                              f32({1, 2, 2}))
                      .output;
                },
                Errc::shape_mismatch,
                {"lstm", "[1, 2, 2]", "[1, 1, 2]"}}),
    [](const auto& instance) { return instance.param.name; });

TEST(Operations, TakeEmptyBatches) {
  EXPECT_EQ(conv(f32({0, 2, 8, 8}), f32({3, 2, 3, 3})).shape(), (Shape{0, 3, 6, 6}));
  EXPECT_EQ(linear(f32({0, 4}), f32({4, 5})).shape(), (Shape{0, 5}));
  EXPECT_EQ(max_pool(f32({0, 2, 8, 8}), {2, 2}).shape(), (Shape{0, 2, 4, 4}));
  EXPECT_EQ(batch_norm(f32({0, 2, 8}), f32({2}), ones({2})).shape(), (Shape{0, 2, 8}));
  EXPECT_EQ(layer_norm(f32({0, 8}), {8}).shape(), (Shape{0, 8}));
  EXPECT_EQ(softmax(f32({0, 8})).shape(), (Shape{0, 8}));
  EXPECT_EQ(matmul(f32({0, 3, 4}), f32({0, 4, 5})).shape(), (Shape{0, 3, 5}));
  EXPECT_EQ(scaled_dot_product_attention(f32({0, 3, 4}), f32({0, 5, 4}), f32({0, 5, 2})).shape(),
            (Shape{0, 3, 2}));
  EXPECT_EQ(lstm(f32({2, 0, 4}), std::vector<RecurrentWeights>{{f32({4, 8}), f32({2, 8})}}).output.shape(),
            (Shape{2, 0, 2}));
  EXPECT_EQ(embedding(zeros({0}, DType::i64), f32({5, 4})).shape(), (Shape{0, 4}));
}

TEST(Operations, OperatorsReadLikeArithmetic) {
  const Tensor x = Tensor::from({1.0F, 2.0F}, {2});
  const Tensor y = -(2 * x + 1) / (x - 3.0) * x;
  EXPECT_EQ(y.dtype(), DType::f32);
  EXPECT_FLOAT_EQ(y.span<float>()[0], 1.5F);
  EXPECT_FLOAT_EQ(y.span<float>()[1], 10.0F);
}

}  // namespace
}  // namespace ballast
