// SPDX-License-Identifier: Apache-2.0
// What is sampled, what is refused, what stops.
#include <algorithm>
#include <fstream>

#include "ballast/error.h"
#include "base/file.h"
#include "base/scratch.h"
#include "tensor/plane_support.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

TEST(Plane, OneOutlierAmongMillionsIsSeenInTheWholePyramid) {
  Tensor tensor = Tensor::zeros(DType::f32, {6000, 5000});
  tensor.mutable_span<float>()[at(4321) * 5000 + 1234] = -77;
  const Plane plane(tensor);
  const Pyramid whole = pyramid(plane);
  for (int level = 0; level < plane.levels(); ++level) {
    const std::int64_t row = 4321 >> level;
    const std::int64_t col = 1234 >> level;
    const Tile tile = whole.tile(level, col / 256, row / 256);
    EXPECT_TRUE(tile.exact);
    EXPECT_EQ(tile.cells[at(row % 256 * tile.width + col % 256)], 77.0F) << level;
    EXPECT_EQ(std::count(tile.cells.begin(), tile.cells.end(), 77.0F), 1) << level;
    EXPECT_EQ(tile.max, 77.0F);
  }
  const Tile sampled = plane.tile(plane.levels() - 1, 0, 0);
  EXPECT_FALSE(sampled.exact);
  EXPECT_EQ(sampled.cells, plane.tile(plane.levels() - 1, 0, 0).cells);
}

TEST(Plane, SampledPicturesShowElementsOfTheirCells) {
  Tensor tensor = Tensor::empty(DType::f32, {5000, 3000});
  std::int64_t i = 0;
  for (float& value : tensor.mutable_span<float>()) {
    value = static_cast<float>(i / 3000 / 32 + 1);
    ++i;
  }
  for (const Tensor& view : {tensor, tensor.t()}) {
    const Plane plane(view);
    const Tile tile = plane.tile(5, 0, 0);
    EXPECT_FALSE(tile.exact);
    for (std::int64_t y = 0; y < tile.height; ++y) {
      for (std::int64_t x = 0; x < tile.width; ++x) {
        const std::int64_t band = view.size(0) == 5000 ? y : x;
        ASSERT_EQ(tile.cells[at(y * tile.width + x)], static_cast<float>(band + 1));
      }
    }
    const int along = view.size(0) == 5000 ? 0 : 1;
    const Lines lines = plane.lines(along, LineStat::absmax);
    EXPECT_FALSE(lines.exact);
    for (std::size_t k = 0; k < lines.points.size(); ++k) {
      const auto row = static_cast<std::int64_t>(k) * lines.step;
      ASSERT_GE(lines.points[k], static_cast<float>(row / 32 + 1));
      ASSERT_LE(lines.points[k], static_cast<float>((row + lines.step) / 32 + 1));
    }
    const Lines across = plane.lines(1 - along, LineStat::norm);
    EXPECT_EQ(across.points.size(), 3000U);
    double squares = 0;
    for (int band = 0; band < 5000; ++band) squares += std::pow(band / 32 + 1, 2);
    for (const float point : across.points) ASSERT_NEAR(point, std::sqrt(squares), 0.05 * std::sqrt(squares));
  }
}

TEST(Plane, SaysWhatIsNotThere) {
  const Tensor tensor = Tensor::zeros(DType::f32, {2, 3, 4});
  EXPECT_THROW(Plane(tensor, {0, 3}), Error);
  EXPECT_THROW(Plane(tensor, {1, 1}), Error);
  EXPECT_THROW(Plane(tensor, {0, 1, 2}), Error);
  EXPECT_THROW(Plane(tensor, {0, 1}, {4}), Error);
  EXPECT_THROW(Plane(tensor, {0, 1}, {0, 0}), Error);
  EXPECT_THROW(static_cast<void>(Plane(tensor).tile(-1, 0, 0)), Error);
  EXPECT_THROW(static_cast<void>(Plane(tensor).tile(63, 0, 0)), Error);
  EXPECT_TRUE(Plane(tensor).tile(0, -1, 0).cells.empty());
  EXPECT_TRUE(Plane(tensor).tile(0, std::numeric_limits<std::int64_t>::max(), 0).cells.empty());
  EXPECT_THROW(Plane(Tensor(DType::f32, {2, 2})), Error);
}

Tensor in_file(const std::string& path, std::int64_t rows, std::int64_t cols, Io io) {
  std::ofstream(path, std::ios::binary) << std::string(at(rows * cols * 4), '\0');
  const auto file = File::open(path, {.io = io});
  file->settle();
  return Tensor::contiguous_view(DType::f32, {rows, cols},
                                 range_of(*file, 0, static_cast<std::uint64_t>(rows * cols * 4)));
}

class PlaneFile : public Scratch {};

TEST_F(PlaneFile, ThatIsCutOffIsAnErrorHoweverItWasOpened) {
  for (const Io io : {Io::read, Io::map}) {
    const std::string name = path("cut.bin");
    const Tensor tensor = in_file(name, 2400, 2000, io);
    const Plane plane(tensor);
    const Plane swapped(tensor.t());
    EXPECT_EQ(pyramid(plane).tile(6, 0, 0).max, 0.0F);
    std::filesystem::resize_file(name, 4096);
    EXPECT_THROW(static_cast<void>(plane.tile(0, 2, 2)), Error);
    EXPECT_THROW(static_cast<void>(plane.tile(5, 0, 0)), Error);
    EXPECT_THROW(static_cast<void>(swapped.tile(3, 0, 0)), Error);
    EXPECT_THROW(static_cast<void>(plane.elements(2000, 0, 4, 4)), Error);
    EXPECT_THROW(static_cast<void>(plane.lines(0, LineStat::norm)), Error);
    EXPECT_THROW(static_cast<void>(pyramid(plane)), Error);
    EXPECT_THROW(static_cast<void>(sampled_summary(tensor)), Error);
    EXPECT_THROW(static_cast<void>(summary(tensor)), Error);
  }
}

// What lies in the plane's order is read once, the rest twice.
TEST(Plane, ThrowingFromProgressStopsThePass) {
  struct Stop {};
  const Tensor tensor = Tensor::zeros(DType::f32, {4000, 4000});
  for (const bool in_order : {true, false}) {
    const Plane plane(in_order ? tensor : tensor.t());
    const std::uint64_t all = tensor.size_bytes() * (in_order ? 1 : 2);
    for (const std::uint64_t after : {std::uint64_t{1}, all / 3, all * 3 / 4}) {
      std::uint64_t last = 0;
      Summary found;
      EXPECT_THROW(static_cast<void>(pyramid(
                       plane,
                       [&](std::uint64_t done, std::uint64_t total) {
                         EXPECT_EQ(total, all);
                         last = done;
                         if (done >= after) throw Stop();
                       },
                       &found)),
                   Stop);
      EXPECT_GE(last, after);
      EXPECT_LT(last, all);
    }
  }
}

}  // namespace
}  // namespace ballast
