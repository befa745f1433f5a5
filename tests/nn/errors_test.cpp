// SPDX-License-Identifier: Apache-2.0
// What layers refuse and how they say it; and the odd inputs they take.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "ballast/load.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "base/error_of.h"
#include "ops/cases.h"

namespace ballast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Block {
  nn::Conv2d conv{3, 4, 3};
  nn::BatchNorm2d norm{4};
  nn::MaxPool2d pool{2};
};

struct Model {
  std::vector<Block> blocks = nn::repeat<Block>(2);
  nn::Embedding words{10, 4};
  nn::MultiheadAttention attention{8, 2};
  nn::LSTM lstm{4, 5};
  nn::LayerNorm norm{8};
  nn::Sequential<nn::Linear, nn::Softmax> head{{4, 2}, {3}};
};

Model made() {
  Model model;
  init(model);
  return model;
}

TEST(LayerErrors, OptionsOfAnotherLayerOfTheFamilyAreRefused) {
  EXPECT_EQ(code_of([] { nn::GRU(2, 4, {.proj_size = 1}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::RNN(2, 4, {.proj_size = 1}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::LSTM(2, 4, {.nonlinearity = nn::RNNNonlinearity::relu}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::GRU(2, 4, {.nonlinearity = nn::RNNNonlinearity::relu}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::AvgPool2d(2, {.dilation = 2}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::MaxPool2d(2, {.count_include_pad = false}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::MaxPool2d(2, {.divisor_override = 3}); }), Errc::invalid_argument);
  for (const auto& options : {nn::PoolOptions<2>{.dilation = 2}, nn::PoolOptions<2>{.ceil_mode = true},
                              nn::PoolOptions<2>{.count_include_pad = false}})
    EXPECT_EQ(code_of([&] { nn::MaxUnpool2d(2, options); }), Errc::invalid_argument);
  for (const auto& options : {nn::PoolOptions<2>{.padding = 1}, nn::PoolOptions<2>{.dilation = 2},
                              nn::PoolOptions<2>{.divisor_override = 3}})
    EXPECT_EQ(code_of([&] { nn::LPPool2d(2, 2, options); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::Conv2d(2, 4, 3, {.output_padding = 1}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::ConvTranspose2d(2, 4, 3, {.padding = "same"}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::ConvTranspose2d(2, 4, 3, {.padding_mode = nn::PaddingMode::reflect}); }),
            Errc::invalid_argument);
  for (const auto& options :
       {nn::RecurrentOptions{.num_layers = 2}, nn::RecurrentOptions{.batch_first = true},
        nn::RecurrentOptions{.dropout = 0.5}, nn::RecurrentOptions{.bidirectional = true},
        nn::RecurrentOptions{.proj_size = 1}}) {
    EXPECT_EQ(code_of([&] { nn::LSTMCell(2, 4, options); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { nn::GRUCell(2, 4, options); }), Errc::invalid_argument);
    EXPECT_EQ(code_of([&] { nn::RNNCell(2, 4, options); }), Errc::invalid_argument);
  }
  EXPECT_EQ(code_of([] { nn::TransformerEncoderLayer(4, 2, {.num_encoder_layers = 1}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::TransformerDecoderLayer(4, 2, {.num_decoder_layers = 1}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::Embedding(3, 4, {.mode = nn::EmbeddingBagMode::sum}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([] { nn::Embedding(3, 4, {.include_last_offset = true}); }), Errc::invalid_argument);
}

TEST(LayerErrors, NameThePathTheOperationAndBothShapes) {
  const Model model = made();
  const Error conv = error_of([&] { return model.blocks[1].conv.forward(zeros({1, 5, 8, 8})); });
  EXPECT_EQ(conv.code(), Errc::shape_mismatch);
  EXPECT_EQ(conv.where(), "blocks.1.conv (Conv2d): conv");
  EXPECT_THAT(conv.what(), AllOf(HasSubstr("[1, 5, 8, 8]"), HasSubstr("[4, 3, 3, 3]")));

  const Error linear = error_of([&] { return model.head.get<0>().forward(zeros({2, 3})); });
  EXPECT_EQ(linear.where(), "head.0 (Linear): linear");
  EXPECT_THAT(linear.what(), AllOf(HasSubstr("F32 [2, 3]"), HasSubstr("F32 [4, 2]")));

  const Error norm = error_of([&] { return model.blocks[0].norm.forward(zeros({1, 3, 8, 8})); });
  EXPECT_THAT(norm.where(), HasSubstr("blocks.0.norm (BatchNorm)"));
  EXPECT_THAT(norm.what(), HasSubstr("[4]"));

  const Error softmax = error_of([&] { return model.head.forward(zeros({2, 4})); });
  EXPECT_EQ(softmax.where(), "head.1 (Softmax): softmax");

  const Error layer_norm = error_of([&] { return model.norm.forward(zeros({2, 7})); });
  EXPECT_THAT(layer_norm.what(), AllOf(HasSubstr("norm (LayerNorm)"), HasSubstr("[2, 7]"), HasSubstr("[8]")));

  const Error lstm = error_of([&] { return model.lstm.forward(zeros({2, 3, 7})).output; });
  EXPECT_THAT(lstm.what(), AllOf(HasSubstr("lstm (LSTM)"), HasSubstr("[2, 3, 7]")));

  const Error pool = error_of([&] { return model.blocks[0].pool.forward(zeros({1, 4, 1, 1})); });
  EXPECT_THAT(pool.where(), HasSubstr("blocks.0.pool (MaxPool): max_pool"));

  const Error attention = error_of([&] { return model.attention.forward(zeros({3, 2, 7})); });
  EXPECT_THAT(attention.what(), AllOf(HasSubstr("attention (MultiheadAttention): linear"),
                                      HasSubstr("[2, 3, 7]"), HasSubstr("[8, 8]")));
}

TEST(LayerErrors, DtypesAndIndices) {
  const Model model = made();
  const Error dtype = error_of([&] { return model.head.get<0>().forward(zeros({2, 4}, DType::i64)); });
  EXPECT_EQ(dtype.code(), Errc::bad_dtype);
  EXPECT_THAT(dtype.where(), HasSubstr("head.0 (Linear): linear"));
  const Error index = error_of([&] { return model.words.forward(Tensor::from<std::int64_t>({1, 10}, {2})); });
  EXPECT_EQ(index.code(), Errc::offset_out_of_range);
  EXPECT_THAT(index.where(), HasSubstr("words (Embedding): embedding"));
  const Error real = error_of([&] { return model.words.forward(zeros({2})); });
  EXPECT_EQ(real.code(), Errc::bad_dtype);
}

TEST(LayerErrors, ALayerWithoutWeightsSaysSo) {
  const Model model;
  const Error error = error_of([&] { return model.head.get<0>().forward(zeros({1, 4})); });
  EXPECT_THAT(error.what(), HasSubstr("Linear"));
}

TEST(LayerErrors, PathsAreSetByLoad) {
  Model model;
  load(model, to_checkpoint(made()));
  EXPECT_EQ(model.blocks[1].conv.place.path, "blocks.1.conv");
  EXPECT_EQ(model.head.get<1>().place.path, "head.1");
}

TEST(LayerErrors, LayersOutsideAModelNameThemselves) {
  nn::Linear layer(2, 2);
  init(layer);
  EXPECT_EQ(error_of([&] { return layer.forward(zeros({1, 3})); }).where(), "Linear: linear");
}

TEST(LayerInputs, EmptyBatches) {
  const Model model = made();
  EXPECT_EQ(model.blocks[0].conv.forward(zeros({0, 3, 8, 8})).shape(), (Shape{0, 4, 6, 6}));
  EXPECT_EQ(model.blocks[0].norm.forward(zeros({0, 4, 8, 8})).shape(), (Shape{0, 4, 8, 8}));
  EXPECT_EQ(model.blocks[0].pool.forward(zeros({0, 4, 8, 8})).shape(), (Shape{0, 4, 4, 4}));
  EXPECT_EQ(model.head.get<0>().forward(zeros({0, 4})).shape(), (Shape{0, 2}));
  EXPECT_EQ(model.words.forward(zeros({0}, DType::i64)).shape(), (Shape{0, 4}));
  EXPECT_EQ(model.norm.forward(zeros({0, 8})).shape(), (Shape{0, 8}));
  EXPECT_EQ(model.attention.forward(zeros({3, 0, 8})).shape(), (Shape{3, 0, 8}));
  EXPECT_EQ(model.lstm.forward(zeros({3, 0, 4})).output.shape(), (Shape{3, 0, 5}));
}

TEST(LayerInputs, NoDimensionsAreRefusedSixAreTaken) {
  const Model model = made();
  const Tensor number = full({}, 1);
  EXPECT_EQ(error_of([&] { return model.head.get<0>().forward(number); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { return model.blocks[0].conv.forward(number); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { return model.blocks[0].norm.forward(number); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { return model.norm.forward(number); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { return model.attention.forward(number); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { return model.lstm.forward(number).output; }).code(), Errc::shape_mismatch);
  EXPECT_EQ(nn::ReLU{}.forward(number).item(), 1);
  EXPECT_EQ(model.words.forward(full({}, 1, DType::i64)).shape(), (Shape{4}));

  const Shape six{2, 1, 3, 1, 2, 4};
  EXPECT_EQ(model.head.get<0>().forward(ones(six)).shape(), (Shape{2, 1, 3, 1, 2, 2}));
  EXPECT_EQ(model.norm.forward(ones({1, 1, 1, 1, 2, 8})).shape(), (Shape{1, 1, 1, 1, 2, 8}));
  EXPECT_EQ(nn::GELU{}.forward(ones(six)).shape(), six);
  EXPECT_EQ(error_of([&] { return model.blocks[0].conv.forward(ones(six)); }).code(), Errc::shape_mismatch);
  EXPECT_EQ(error_of([&] { return model.attention.forward(ones(six)); }).code(), Errc::shape_mismatch);
}

TEST(LayerInputs, NothingAtAllIsRefused) {
  const Model model = made();
  EXPECT_THROW(static_cast<void>(model.head.get<0>().forward(Tensor())), Error);
  EXPECT_THROW(static_cast<void>(model.blocks[0].conv.forward(Tensor())), Error);
  EXPECT_THROW(static_cast<void>(model.blocks[0].norm.forward(Tensor())), Error);
  EXPECT_THROW(static_cast<void>(model.words.forward(Tensor())), Error);
  EXPECT_THROW(static_cast<void>(model.attention.forward(Tensor())), Error);
  EXPECT_THROW(static_cast<void>(model.lstm.forward(Tensor())), Error);
  EXPECT_THROW(static_cast<void>(nn::Softmax{}.forward(Tensor())), Error);
}

TEST(LayerInputs, NanAndInfinityFlow) {
  nn::Linear layer(2, 2);
  layer.weight = eye(2, 2);
  layer.bias = zeros({2});
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t rows : {1, 40}) {
    Tensor x = zeros({rows, 2});
    x.mutable_span<float>()[0] = std::nanf("");
    const Tensor y = layer.forward(x, Activation::Kind::relu);
    EXPECT_TRUE(std::isnan(y.span<float>()[0]));
    EXPECT_TRUE(std::isnan(y.span<float>()[1]));
    x.mutable_span<float>()[0] = inf;
    EXPECT_EQ(layer.forward(x).span<float>()[0], inf);
    EXPECT_TRUE(std::isnan(layer.forward(x).span<float>()[1]));  // infinity times 0
  }
  nn::Conv2d conv(1, 1, 3, {.padding = 1});
  conv.weight = ones({1, 1, 3, 3});
  conv.bias = zeros({1});
  Tensor image = zeros({1, 1, 5, 5});
  image.mutable_span<float>()[12] = std::nanf("");
  const Tensor spread = isnan(conv.forward(image, Activation::Kind::relu));
  EXPECT_EQ(sum(spread).item(), 9);
}

// What is prepared for a weight goes when another takes its place, also one at the same address.
TEST(LayerCaches, OtherWeightsAreNoticed) {
  nn::Linear layer(64, 64);
  nn::Conv2d conv(8, 8, 3);
  for (int round = 0; round < 4; ++round) {
    layer.weight = full({64, 64}, round);
    layer.bias = zeros({64});
    conv.weight = full({8, 8, 3, 3}, round);
    conv.bias = zeros({8});
    for (const std::int64_t rows : {1, 16}) {
      EXPECT_EQ(layer.forward(ones({rows, 64})).span<float>()[0], static_cast<float>(64 * round));
    }
    EXPECT_EQ(conv.forward(ones({1, 8, 5, 5})).span<float>()[0], static_cast<float>(72 * round));
  }
}

}  // namespace
}  // namespace ballast
