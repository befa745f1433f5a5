// SPDX-License-Identifier: Apache-2.0
// Tiles and norms against a loop.
#include "ballast/error.h"
#include "base/checked.h"
#include "tensor/plane_support.h"

namespace ballast {
namespace {

TEST(Plane, TilesAndNormsAreThoseOfALoopForEveryDtypeAndLayout) {
  std::size_t compared = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const auto& [name, tensor] : layouts(dtype, 67, 131)) {
      compared += expect_plane(Plane(tensor), picture_of(tensor), std::string(info(dtype).code) + " " + name);
    }
  }
  EXPECT_GT(compared, 4'000'000U);
}

TEST(Plane, TilesAndNormsAreThoseOfALoopForEveryForm) {
  std::size_t compared = 0;
  for (const std::int64_t rows : {1, 2, 63, 64, 65, 257, 513}) {
    for (const std::int64_t cols : {1, 3, 64, 127, 256, 300}) {
      for (const bool transposed : {false, true}) {
        const Tensor tensor = transposed ? some_tensor(DType::bf16, {cols, rows}, 8).t()
                                         : some_tensor(DType::bf16, {rows, cols}, 9);
        compared += expect_plane(Plane(tensor), picture_of(tensor),
                                 std::to_string(rows) + "x" + std::to_string(cols));
      }
    }
  }
  EXPECT_GT(compared, 1'000'000U);
}

TEST(Plane, WideAndTallPicturesAreReadInSeveralChunks) {
  for (const bool tall : {false, true}) {
    const Tensor wide = some_tensor(DType::i8, {3, 140'000}, 10);
    const Tensor tensor = tall ? wide.t().contiguous() : wide;
    expect_lines(pyramid(Plane(tensor)), picture_of(tensor), tall ? "tall" : "wide");
    const Plane plane(tensor);
    const Pyramid whole = pyramid(plane);
    for (const int level : {6, 8, plane.levels() - 1}) {
      const Tile tile = whole.tile(level, 0, 0);
      for (std::int64_t i = 0; i < tile.width * tile.height; ++i) {
        const Found want =
            expected_cell(picture_of(tensor), level, i / tile.width, i % tile.width, CellStat::absmax);
        ASSERT_EQ(tile.cells[at(i)], want.shown);
        if (i > 20) break;  // a picture is made anew for each
      }
    }
  }
}

TEST(Plane, VectorsAreFoldedElementByElement) {
  for (const std::int64_t count : {1, 2, 5, 63, 4095, 4096, 5000, 70'001}) {
    for (const bool strided : {false, true}) {
      const Tensor tensor = strided ? some_tensor(DType::f32, {count, 3}, 11).index({ellipsis, 1})
                                    : some_tensor(DType::f32, {count}, 12);
      const Plane plane(tensor);
      ASSERT_TRUE(plane.fold().has_value());
      const std::int64_t width = plane.fold().value();
      EXPECT_GE(width, plane.rows());
      EXPECT_TRUE(plane.whole());
      const Picture picture{(count + width - 1) / width, width, numbers_of(tensor)};
      expect_plane(plane, picture, "vector of " + std::to_string(count));
    }
  }
}

TEST(Plane, AxesOfAnyRankAreShown) {
  const Tensor tensor = some_tensor(DType::f16, {3, 5, 4, 6, 7}, 13);
  for (std::int64_t a = 0; a < 5; ++a) {
    for (std::int64_t b = 0; b < 5; ++b) {
      if (a == b) continue;
      std::vector<std::int64_t> order = {a, b};
      std::vector<std::int64_t> indices;
      Tensor view = tensor;
      for (std::int64_t axis = 4; axis >= 0; --axis) {
        if (axis == a || axis == b) continue;
        indices.insert(indices.begin(), tensor.size(axis) - 1);
        view = view.narrow(axis, tensor.size(axis) - 1, 1);
      }
      for (std::int64_t axis = 0; axis < 5; ++axis) {
        if (axis != a && axis != b) order.push_back(axis);
      }
      const Tensor matrix = view.permute(order).contiguous().reshape({tensor.size(a), tensor.size(b)});
      expect_plane(Plane(tensor, {a, b}, indices), picture_of(matrix), "axes");
      EXPECT_FALSE(Plane(tensor, {a, b}, indices).whole());
    }
  }
  EXPECT_EQ(Plane(tensor).axes(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(Plane(tensor).at(), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(Plane, CellsOfZerosHaveNoSignWhereSizesAreShown) {
  for (const float zero : {0.F, -0.F}) {
    const Plane plane(Tensor::from(std::vector<float>(16, zero), {4, 4}));
    for (const int level : {0, 1, 2}) {
      const Tile tile = plane.tile(level, 0, 0, CellStat::absmax);
      EXPECT_FALSE(std::signbit(tile.min)) << zero << " at level " << level;
      EXPECT_FALSE(std::signbit(tile.max)) << zero << " at level " << level;
      for (const float cell : tile.cells) EXPECT_FALSE(std::signbit(cell)) << zero << " at level " << level;
    }
  }
}

TEST(Plane, OneElementIsOneCellAndNothingIsNone) {
  const Plane one(Tensor::from({-2.5F}, {}));
  EXPECT_EQ(one.rows() * one.cols(), 1);
  EXPECT_EQ(one.tile(0, 0, 0).cells, std::vector<float>{2.5F});
  EXPECT_EQ(one.tile(0, 0, 0, CellStat::value).cells, std::vector<float>{-2.5F});
  for (const Shape& shape : {Shape{0}, Shape{0, 4}, Shape{4, 0}, Shape{0, 3, 3}, Shape{2, 0, 2}}) {
    const Plane none(Tensor::zeros(DType::f32, shape));
    EXPECT_EQ(none.levels(), 1);
    EXPECT_TRUE(none.tile(0, 0, 0).cells.empty());
    EXPECT_TRUE(pyramid(none).tile(0, 0, 0).cells.empty());
    EXPECT_TRUE(none.elements(0, 0, 8, 8).numel() == 0);
    for (const int axis : {0, 1})
      EXPECT_EQ(pyramid(none).lines(axis, LineStat::norm).points.size(),
                at(axis == 0 ? none.rows() : none.cols()));
  }
}

TEST(Plane, ElementsAreThoseOfTheTensor) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const auto& [name, tensor] : layouts(dtype, 20, 30)) {
      const Tensor got = Plane(tensor).elements(16, 3, 8, 9);
      EXPECT_EQ(got.shape(), (Shape{4, 9})) << name;
      const auto a = numbers_of(got);
      const auto b = numbers_of(tensor.narrow(0, 16, 4).narrow(1, 3, 9));
      for (std::size_t k = 0; k < a.size(); ++k)
        EXPECT_TRUE(a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) << info(dtype).code << name << k;
    }
  }
}

TEST(Plane, OfTwoTensorsIsTheirDifferenceRatioOrSign) {
  for (const auto& [name_a, a] : layouts(DType::f32, 70, 40)) {
    for (const auto& [name_b, b] : layouts(DType::bf16, 70, 40)) {
      const auto left = numbers_of(a);
      const auto right = numbers_of(b);
      for (const Delta delta : {Delta::difference, Delta::ratio, Delta::sign}) {
        Picture picture{70, 40, {}};
        for (std::size_t i = 0; i < left.size(); ++i) {
          const double difference = left[i] == right[i] ? 0 : left[i] - right[i];
          const double sign = difference > 0 ? 1 : difference < 0 ? -1 : difference;
          picture.numbers.push_back(delta == Delta::difference ? difference
                                    : delta == Delta::ratio    ? left[i] / right[i]
                                                               : sign);
        }
        expect_plane(Plane(a, b, delta), picture, name_a + " and " + name_b);
      }
    }
  }
  EXPECT_THROW(Plane(Tensor::zeros(DType::f32, {2, 3}), Tensor::zeros(DType::f32, {3, 2}), Delta::sign),
               Error);
}

// Each layout of a picture of 64-bit integers, whose values a double cannot tell from their neighbours.
template <class Integer>
std::vector<std::pair<std::string, Tensor>> integers(const std::vector<Integer>& values, std::int64_t rows,
                                                     std::int64_t cols) {
  const Tensor plain = Tensor::from(values, {rows, cols});
  std::vector<Integer> wide;  // each row, and as much behind it that is not shown
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = values.begin() + i * cols;
    wide.insert(wide.end(), row, row + cols);
    wide.resize(wide.size() + at(cols), 7);
  }
  return {{"rows", plain},
          {"columns", plain.t().contiguous().t()},
          {"strided", Tensor::from(wide, {rows, 2 * cols}).narrow(1, 0, cols)},
          {"vector", plain.reshape({rows * cols})}};
}

template <class A, class B>
std::size_t expect_exact_differences(unsigned seed) {
  constexpr std::int64_t kRows = 37;
  constexpr std::int64_t kCols = 51;
  std::mt19937_64 random(seed);
  std::vector<A> a;
  std::vector<B> b;
  for (std::int64_t i = 0; i < kRows * kCols; ++i) {
    a.push_back(static_cast<A>(random()));
    const auto near = static_cast<B>(static_cast<std::uint64_t>(a.back()) + random() % 5 - 2);
    b.push_back(random() % 8 == 0 ? static_cast<B>(random()) : near);
    if (random() % 8 == 0) a.back() = std::numeric_limits<A>::min();
    if (random() % 8 == 0) b.back() = std::numeric_limits<B>::max();
  }
  std::size_t compared = 0;
  for (const Delta delta : {Delta::difference, Delta::sign}) {
    Picture picture{kRows, kCols, {}};
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto difference = static_cast<Int128>(a[i]) - static_cast<Int128>(b[i]);
      picture.numbers.push_back(delta == Delta::difference ? static_cast<double>(difference)
                                : difference > 0           ? 1
                                : difference < 0           ? -1
                                                           : 0);
    }
    const auto left = integers(a, kRows, kCols);
    const auto right = integers(b, kRows, kCols);
    for (std::size_t i = 0; i + 1 < left.size(); ++i) {
      for (std::size_t k = 0; k + 1 < right.size(); ++k)
        compared += expect_plane(Plane(left[i].second, right[k].second, delta), picture,
                                 left[i].first + " and " + right[k].first);
    }
    const Plane folded(left.back().second, right.back().second, delta);
    const std::int64_t width = folded.fold().value();
    const Picture lines{(kRows * kCols + width - 1) / width, width, picture.numbers};
    compared += expect_plane(folded, lines, "vectors");
  }
  return compared;
}

TEST(Plane, DifferencesOf64BitIntegersAreExactInEveryLayout) {
  EXPECT_GT((expect_exact_differences<std::int64_t, std::int64_t>(14)), 100'000U);
  EXPECT_GT((expect_exact_differences<std::uint64_t, std::uint64_t>(15)), 100'000U);
}

TEST(Plane, DifferencesOf64BitIntegersAndOtherNumbersAreExactToo) {
  EXPECT_GT((expect_exact_differences<std::int64_t, std::uint64_t>(16)), 100'000U);
  EXPECT_GT((expect_exact_differences<std::uint64_t, std::int64_t>(17)), 100'000U);
  EXPECT_GT((expect_exact_differences<std::int64_t, std::int32_t>(18)), 100'000U);
  EXPECT_GT((expect_exact_differences<std::int8_t, std::uint64_t>(19)), 100'000U);
  const Tensor whole = Tensor::from(std::vector<std::int64_t>{(std::int64_t{1} << 60) + 1, 5}, {2});
  const Tensor real = Tensor::from(std::vector<double>{0x1p60, kNaN}, {2}, DType::f64);
  const Tile tile = Plane(whole, real, Delta::difference).tile(0, 0, 0, CellStat::value);
  EXPECT_EQ(tile.cells[0], 1.0F);
  EXPECT_TRUE(std::isnan(tile.cells[1]));
  const Tile signs = Plane(real, whole, Delta::sign).tile(0, 0, 0, CellStat::value);
  EXPECT_EQ(signs.cells[0], -1.0F);
  EXPECT_TRUE(std::isnan(signs.cells[1]));
}

}  // namespace
}  // namespace ballast
