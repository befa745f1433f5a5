// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<float> floats(const Tensor& tensor) {
  const Tensor made = tensor.contiguous();
  const auto span = made.span<float>();
  return {span.begin(), span.end()};
}

TEST(Quantize, EachChannelHasItsOwnScale) {
  Checkpoint in;
  // By hand: scales 1 and 0.5; 2.5 and 1.5 round to even, 63.5 / 0.5 is 127.
  in.add("w", Tensor::from<float>({127, -2.5F, 1.5F, 0, 63.5F, -63.5F, 0.25F, 0.26F}, {2, 4}));
  in.add("bias", Tensor::from<float>({1, 2}, {2}));
  in.add("n", Tensor::from<std::int64_t>({1, 2, 3, 4}, {2, 2}));
  const Quantized result = quantize_int8(in);
  ASSERT_THAT(result.tensors, SizeIs(1));
  EXPECT_THAT(result.checkpoint.tensor("w").span<std::int8_t>(), ElementsAre(127, -2, 2, 0, 127, -127, 0, 1));
  EXPECT_THAT(result.checkpoint.tensor("w_scale").span<float>(), ElementsAre(1, 0.5F));
  EXPECT_EQ(result.checkpoint.at("bias").dtype, DType::f32);
  EXPECT_EQ(result.checkpoint.at("n").dtype, DType::i64);
  EXPECT_DOUBLE_EQ(result.tensors[0].max_error, 0.5);
  // Signal 127² + 2.5² + 1.5² + 2·63.5² + 0.25² + 0.26², noise 2·0.5² + 0.25² + 0.24².
  const double quarter = static_cast<double>(0.26F);
  const double signal = 16129 + 6.25 + 2.25 + 2 * 4032.25 + 0.0625 + quarter * quarter;
  const double noise = 0.25 + 0.25 + 0.0625 + (0.5 - quarter) * (0.5 - quarter);
  EXPECT_NEAR(result.tensors[0].snr, 10 * std::log10(signal / noise), 1e-9);
  EXPECT_THAT(floats(dequantize(result.checkpoint).tensor("w")),
              ElementsAre(127, -2, 2, 0, 63.5F, -63.5F, 0, 0.5F));
}

// Elements smaller than a byte do not begin on one: a range may, all the same, begin at any of them.
TEST(Quantize, AnyRangeOfTheIntegersIsThatOfTheWhole) {
  std::vector<float> values(3 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 2;
  for (const DType dtype : {DType::f4, DType::f6_e2m3, DType::f8_e4m3, DType::f16, DType::f32, DType::f64}) {
    Checkpoint in;
    in.add("w", Tensor::from(std::span<const float>(values), {3, 16}).to(dtype));
    const Tensor whole = quantize_int8(in).checkpoint.tensor("w").clone();
    const Tensor streamed = quantize_int8(in).checkpoint.tensor("w");  // nothing of it is in memory
    for (std::size_t first = 0; first < values.size(); ++first) {
      for (std::size_t size = 1; first + size <= values.size(); ++size) {
        std::vector<std::byte> part(size);
        streamed.read(first, part);
        ASSERT_EQ(std::memcmp(part.data(), whole.data() + first, size), 0)
            << info(dtype).code << ": " << size << " from " << first;
      }
    }
  }
}

TEST(Quantize, AnyDimensionMayHoldTheChannels) {
  std::vector<float> values(2 * 3 * 4);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 11;
  Checkpoint in;
  in.add("w", Tensor::from(std::span<const float>(values), {2, 3, 4}));
  for (const std::int64_t axis : {0, 1, 2}) {
    const Quantized made = quantize_int8(in, {}, [&](const Entry&) { return std::optional(axis); });
    const Tensor scales = made.checkpoint.tensor("w_scale");
    const std::vector<float> back = floats(dequantize(made.checkpoint).tensor("w"));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t channel = axis == 0 ? i / 12 : axis == 1 ? i / 4 % 3 : i % 4;
      EXPECT_LE(std::abs(back[i] - values[i]), scales.span<float>()[channel] * 0.500001F) << axis << ' ' << i;
    }
  }
}

TEST(Quantize, WhatIsExceptedStaysAsItIs) {
  Checkpoint in;
  for (const char* name : {"head.weight", "body.weight"}) in.add(name, Tensor::from<float>({1, 2}, {1, 2}));
  const Quantized made = quantize_int8(in, {"^head"});
  EXPECT_EQ(made.checkpoint.at("head.weight").dtype, DType::f32);
  EXPECT_EQ(made.checkpoint.at("body.weight").dtype, DType::i8);
  EXPECT_EQ(made.tensors.size(), 1U);
}

TEST(Quantize, ReadInAnyPiecesItIsTheSame) {
  std::vector<float> values(50'003 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  Checkpoint in;
  in.add("w", Tensor::from(std::span<const float>(values), {3, 50'003}));
  const Checkpoint back = dequantize(quantize_int8(in).checkpoint);
  const Tensor tensor = back.tensor("w");
  std::vector<std::byte> pieces(static_cast<std::size_t>(tensor.size_bytes()));
  for (std::size_t at = 0, step = 1; at < pieces.size(); step = step * 3 + 1) {
    const std::size_t size = std::min(step, pieces.size() - at);
    tensor.read(at, std::span(pieces).subspan(at, size));  // not even whole elements
    at += size;
  }
  EXPECT_EQ(std::memcmp(pieces.data(), tensor.data(), pieces.size()), 0);
}

TEST(Quantize, ZerosTinyValuesAndOtherDtypesComeBack) {
  Checkpoint in;
  in.add("zero", Tensor::zeros(DType::f32, {2, 3}));
  in.add("tiny", Tensor::from<float>({1e-44F, 0}, {1, 2}));
  in.add("half", Tensor::from<float>({127, 1, 2, 3}, {1, 4}).to(DType::f16));
  in.add("empty", Tensor::zeros(DType::f32, {0, 4}));
  const Quantized made = quantize_int8(in);
  EXPECT_TRUE(std::isinf(made.tensors[0].snr));
  const Checkpoint back = dequantize(made.checkpoint);
  EXPECT_THAT(floats(back.tensor("zero")), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(floats(back.tensor("tiny")), ElementsAre(0, 0));
  EXPECT_EQ(back.at("half").dtype, DType::f16);
  EXPECT_THAT(floats(back.tensor("half").to(DType::f32)), ElementsAre(127, 1, 2, 3));
  EXPECT_EQ(back.at("empty").dtype, DType::f32);
}

TEST(Quantize, WhatIsNotFiniteIsRefused) {
  for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t at = 0; at < 3; ++at) {
      std::vector<float> values = {1, 2, 3};
      values[at] = odd;
      Checkpoint in;
      in.add("w", Tensor::from(std::span<const float>(values), {1, 3}));
      EXPECT_EQ(code_of([&] { (void)quantize_int8(in); }), Errc::not_representable);
    }
  }
}

TEST(Quantize, TiedTensorsStayTied) {
  Checkpoint in;
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  in.add("a", tensor);
  in.add("b", tensor);
  const Checkpoint made = quantize_int8(in).checkpoint;
  EXPECT_TRUE(made.tensor("a").same_view(made.tensor("b")));
}

TEST(Quantize, MetadataThatDoesNotFitTheTensorsIsRefused) {
  Checkpoint in;
  in.add("w", Tensor::from<std::int8_t>({1, 2, 3, 4}, {2, 2}));
  in.add("w_scale", Tensor::from<float>({1, 2}, {2}));
  const auto read_with = [&](const std::string& text) {
    Checkpoint changed = in;
    changed.metadata = Metadata{{"ballast.quantized", text}};
    (void)dequantize(changed);
  };
  const auto with = [&](const std::string& text) { return code_of([&] { read_with(text); }); };
  const std::string fine = R"({"w":{"scheme":"int8","axis":0,"scale":"w_scale","dtype":"F32"}})";
  EXPECT_NO_THROW(read_with(fine));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = fine;
    return with(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(with("[]"), Errc::bad_json);
  EXPECT_EQ(with("{"), Errc::bad_json);
  EXPECT_EQ(changed("\"axis\":0", "\"axis\":2"), Errc::shape_mismatch);
  EXPECT_EQ(changed("\"axis\":0", "\"axis\":-1"), Errc::shape_mismatch);
  EXPECT_EQ(changed("\"axis\":0,", ""), Errc::bad_json);
  EXPECT_EQ(changed("w_scale", "w"), Errc::bad_dtype);
  EXPECT_EQ(changed("w_scale", "x"), Errc::not_found);
  EXPECT_EQ(changed("\"w\":", "\"v\":"), Errc::not_found);
  EXPECT_EQ(changed("F32", "I32"), Errc::bad_dtype);
  EXPECT_EQ(changed("int8", "int4"), Errc::unsupported);
}

// A mark on any one of the names of a tensor holds for all of them.
TEST(Quantize, EveryNameOfATiedTensorComesBack) {
  Checkpoint one;
  one.add("w", Tensor::from<float>({1, -2, 0.5F, 4}, {2, 2}));
  const Checkpoint packed = quantize_int8(one).checkpoint;
  const std::string mark = packed.metadata->at("ballast.quantized");
  for (const std::string marked : {"a", "b", "c"}) {
    Checkpoint tied;
    for (const char* name : {"a", "b", "c"}) tied.add(name, packed.tensor("w"));
    tied.add("w_scale", packed.tensor("w_scale"));
    std::string said = mark;
    said.replace(said.find("\"w\""), 3, "\"" + marked + "\"");
    tied.metadata = Metadata{{"ballast.quantized", said}};
    const Checkpoint back = dequantize(tied);
    ASSERT_EQ(back.size(), 3U) << said;
    for (const Entry& entry : back) EXPECT_EQ(entry.dtype, DType::f32) << marked << ' ' << entry.name;
    EXPECT_TRUE(back.tensor("a").same_view(back.tensor("c")));
  }
}

}  // namespace
}  // namespace ballast
