// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "ballast/error.h"
#include "ballast/tensor.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> numbers(const std::string& text) {
  std::vector<std::int64_t> found;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string part; std::getline(in, part, ',');) found.push_back(std::stoll(part));
  return found;
}

Tensor arange(const Shape& shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(*try_numel(shape)));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(std::span<const std::int64_t>(values), shape);
}

std::vector<std::int64_t> elements(const Tensor& tensor) {
  const Tensor row_major = tensor.clone();
  const auto span = row_major.span<std::int64_t>();
  return {span.begin(), span.end()};
}

TEST(Reshape, IsAViewExactlyWhereNumPysIs) {
  std::ifstream file(BALLAST_TEST_DATA "/tensor/reshape_cases.txt");
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    std::istringstream fields(line);
    std::string shape, order, steps, target, verdict, result;
    fields >> shape >> order >> steps >> target >> verdict >> result;
    Tensor view = arange(numbers(shape)).permute(numbers(order));
    std::vector<Index> slices;
    for (const std::int64_t step : numbers(steps)) slices.emplace_back(Slice{{}, {}, step});
    view = view.index(slices);
    if (verdict == "!") {
      EXPECT_EQ(code_of([&] { static_cast<void>(view.reshape(numbers(target))); }), Errc::shape_mismatch)
          << line;
      continue;
    }
    const Tensor reshaped = view.reshape(numbers(target));
    EXPECT_EQ(reshaped.shape(), Shape(numbers(result))) << line;
    EXPECT_EQ(reshaped.storage() == view.storage(), verdict == "view") << line;
    EXPECT_EQ(elements(reshaped), elements(view)) << line;
  }
  EXPECT_GT(cases, 700U);
}

TEST(Reshape, OfAShapeAloneIsAShapeAlone) {
  const Tensor shape_only(DType::f32, {4, 6});
  EXPECT_EQ(shape_only.t().reshape({-1, 3}).shape(), (Shape{8, 3}));
  EXPECT_FALSE(shape_only.reshape({24}).has_data());
  EXPECT_THROW(static_cast<void>(shape_only.reshape({5, -1})), Error);
}

TEST(Reshape, OfSubByteElementsThatBeginInsideAByteIsAView) {
  const Tensor base = Tensor::zeros(DType::f4, {3, 3});
  const Tensor row = base.index({1});
  EXPECT_EQ(row.bit_offset(), 12U);
  EXPECT_EQ(row.reshape({3, 1}).storage(), base.storage());
  EXPECT_EQ(row.reshape({3, 1}).bit_offset(), 12U);
}

TEST(Views, PermuteAndTransposeMoveNames) {
  const Tensor tensor = arange({2, 3, 4});
  EXPECT_EQ(tensor.permute({2, 0, -2}).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(tensor.permute({2, 0, 1}).strides(), (Strides{1, 12, 4}));
  EXPECT_EQ(tensor.t().shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.permute({0, 1})); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.permute({0, 1, -2})); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.transpose(0, 3)); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(arange({3}).t()); }), Errc::shape_mismatch);
}

TEST(Views, NarrowTakesOnlyWhatIsThere) {
  const Tensor tensor = arange({3, 4});
  EXPECT_THAT(elements(tensor.narrow(1, 1, 2)), ElementsAre(1, 2, 5, 6, 9, 10));
  EXPECT_EQ(tensor.narrow(0, 3, 0).numel(), 0);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.narrow(0, 2, 2)); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.narrow(0, -1, 1)); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.narrow(0, INT64_MAX, INT64_MAX)); }),
            Errc::shape_mismatch);
}

TEST(Views, ExpandRepeatsDimensionsOfOne) {
  const Tensor tensor = arange({2, 1});
  EXPECT_THAT(elements(tensor.expand({2, 3})), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(elements(tensor.expand({2, -1, 2})), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.expand({3, 2})); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.expand({2})); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.expand({INT64_MAX, 2, 1})); }), Errc::size_overflow);
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.expand({-1, 2, 1})); }), Errc::size_overflow);
}

TEST(Views, UnsqueezeAndSqueezeUndoEachOther) {
  const Tensor tensor = arange({2, 3});
  for (const std::int64_t dim : {0, 1, 2, -1}) {
    EXPECT_TRUE(tensor.unsqueeze(dim).is_contiguous());
    EXPECT_EQ(tensor.unsqueeze(dim).squeeze(dim).shape(), tensor.shape());
  }
  EXPECT_EQ(tensor.squeeze(0).shape(), tensor.shape());
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.unsqueeze(3)); }), Errc::shape_mismatch);
}

TEST(Views, HostileStridesOfDimensionsNobodyWalksDoNotOverflow) {
  const auto storage = Storage::heap(64, true);
  const Tensor one(DType::f32, {1, 4}, {INT64_MAX, 1}, storage);
  EXPECT_EQ(one.unsqueeze(0).rank(), 3U);
  EXPECT_EQ(one.reshape({4}).numel(), 4);
  EXPECT_EQ(one.index({0, Slice{{}, {}, -1}}).numel(), 4);
  EXPECT_EQ(one.index({Slice{{}, {}, INT64_MIN}}).numel(), 4);
  EXPECT_EQ(one.t().clone().numel(), 4);
  const Tensor none(DType::f32, {0, 5}, {INT64_MIN, INT64_MAX}, storage);
  EXPECT_EQ(none.index({Slice{}, -1}).numel(), 0);
  EXPECT_EQ(none.narrow(1, 2, 3).unsqueeze(1).numel(), 0);
  EXPECT_EQ(none.reshape({5, 0}).numel(), 0);
  EXPECT_EQ(none.clone().numel(), 0);
}

}  // namespace
}  // namespace ballast
