// SPDX-License-Identifier: Apache-2.0
// Pictures by a loop that knows neither strides nor files, and what a Plane is held against them by.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "ballast/stats.h"

namespace ballast {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline std::size_t at(std::int64_t place) {
  return static_cast<std::size_t>(place);
}

// Values of every size, zeros, and now and then what is not a number.
inline std::vector<double> some_values(std::int64_t count, unsigned seed, bool only_finite = false) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 3);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    double value = normal(random);
    const auto kind = random() % 40;
    if (kind == 0) value = 0;
    if (kind == 1) value *= 30;
    if (kind == 2 && !only_finite) value = kNaN;
    if (kind == 3 && random() % 10 == 0 && !only_finite) value = random() % 2 == 0 ? kInfinity : -kInfinity;
    values.push_back(value);
  }
  return values;
}

inline Tensor tensor_of_bytes(DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  const Tensor form(dtype, shape);
  auto storage = Storage::heap(form.size_bytes());
  for (std::uint64_t i = 0; i < form.size_bytes(); ++i)
    storage->mutable_data()[i] = static_cast<std::byte>(random() & 0xFFU);
  return Tensor::contiguous_view(dtype, shape, storage);
}

inline Tensor some_tensor(DType dtype, const Shape& shape, unsigned seed) {
  const std::int64_t count = Tensor(DType::f32, shape).numel();
  if (is_real(dtype)) return Tensor::from(some_values(count, seed), shape, dtype);
  if (info(dtype).kind != DTypeKind::complex) return tensor_of_bytes(dtype, shape, seed);
  const DType part = dtype == DType::c32 ? DType::f16 : dtype == DType::c64 ? DType::f32 : DType::f64;
  const Tensor parts = Tensor::from(some_values(2 * count, seed), {2 * count}, part);
  return Tensor::contiguous_view(dtype, shape, parts.storage());
}

// Row-major, as numbers, without any code of Plane's.
inline std::vector<double> numbers_of(const Tensor& tensor) {
  const auto count = at(tensor.numel());
  std::vector<std::byte> bytes(tensor.size_bytes());
  tensor.read(0, bytes);
  auto storage = Storage::heap(bytes.size());
  std::copy(bytes.begin(), bytes.end(), storage->mutable_data());
  std::vector<double> numbers(count);
  const auto as_doubles = [&](DType dtype, std::size_t values) {
    const Tensor flat = Tensor::contiguous_view(dtype, {static_cast<std::int64_t>(values)}, storage);
    const Tensor cast = flat.to(DType::f64);
    const auto span = cast.span<double>();
    return std::vector<double>(span.begin(), span.end());
  };
  const DTypeInfo& about = info(tensor.dtype());
  if (is_real(tensor.dtype())) return as_doubles(tensor.dtype(), count);
  if (about.kind == DTypeKind::complex) {
    const auto parts = as_doubles(about.bits == 32   ? DType::f16
                                  : about.bits == 64 ? DType::f32
                                                     : DType::f64,
                                  2 * count);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = std::abs(std::complex<double>(parts[2 * i], parts[2 * i + 1]));
    return numbers;
  }
  if (about.bits >= 8) {
    const DType integer = tensor.dtype() == DType::qi8    ? DType::i8
                          : tensor.dtype() == DType::qi32 ? DType::i32
                          : about.bits == 16              ? DType::u16
                                                          : DType::u8;
    return as_doubles(integer, count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned>(bytes[i * about.bits / 8]);
    numbers[i] = byte >> (i * about.bits % 8) & ((1U << about.bits) - 1U);
  }
  return numbers;
}

struct Picture {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> numbers;  // shorter than rows * cols where the last row is

  [[nodiscard]] const double* find(std::int64_t row, std::int64_t col) const {
    const std::size_t place = at(row * cols + col);
    return row < rows && col < cols && place < numbers.size() ? &numbers[place] : nullptr;
  }
};

struct Found {
  float shown;
  double spread;  // what rounding may cost
};

inline Found expected_cell(const Picture& picture, int level, std::int64_t row, std::int64_t col,
                           CellStat stat) {
  const std::int64_t size = std::int64_t{1} << level;
  double low = kInfinity;
  double high = -kInfinity;
  double sum = 0;
  double sizes = 0;
  double count = 0;
  double nan = 0;
  for (std::int64_t r = row * size; r < std::min((row + 1) * size, picture.rows); ++r) {
    for (std::int64_t c = col * size; c < std::min((col + 1) * size, picture.cols); ++c) {
      const double* value = picture.find(r, c);
      if (value == nullptr) continue;
      if (std::isnan(*value)) {
        ++nan;
        continue;
      }
      low = std::min(low, *value);
      high = std::max(high, *value);
      sum += *value;
      sizes += std::fabs(*value);
      ++count;
    }
  }
  const auto cell = [](double value) { return static_cast<float>(value); };
  if (stat == CellStat::nan) return {count + nan == 0 ? cell(kNaN) : cell(nan / (count + nan)), 0};
  if (count == 0) return {cell(kNaN), 0};
  if (stat == CellStat::absmax) return {cell(std::max(std::fabs(low), std::fabs(high))), 0};
  if (stat == CellStat::value) return {cell(std::fabs(low) > std::fabs(high) ? low : high), 0};
  return {cell(sum / count), 1e-6 * sizes / count};
}

inline constexpr std::array<CellStat, 4> kStats = {CellStat::absmax, CellStat::mean, CellStat::value,
                                                   CellStat::nan};

// How many cells were compared.
template <class Shown>
std::size_t expect_tiles(const Shown& shown, const Plane& plane, const Picture& picture,
                         const std::string& what) {
  EXPECT_EQ(plane.rows(), picture.rows) << what;
  EXPECT_EQ(plane.cols(), picture.cols) << what;
  std::size_t compared = 0;
  for (int level = 0; level < plane.levels() + 2; ++level) {
    const std::int64_t size = std::int64_t{1} << level;
    const std::int64_t rows = (picture.rows + size - 1) / size;
    const std::int64_t cols = (picture.cols + size - 1) / size;
    for (const CellStat stat : kStats) {
      for (std::int64_t y = 0; y * 256 < rows + 256; ++y) {
        for (std::int64_t x = 0; x * 256 < cols + 256; ++x) {
          const Tile tile = shown.tile(level, x, y, stat);
          const bool inside = y * 256 < rows && x * 256 < cols;
          EXPECT_EQ(tile.width, inside ? std::min<std::int64_t>(256, cols - x * 256) : 0) << what;
          EXPECT_EQ(tile.height, inside ? std::min<std::int64_t>(256, rows - y * 256) : 0) << what;
          EXPECT_TRUE(tile.exact) << what;
          std::uint64_t nan = 0;
          for (std::int64_t i = 0; i < tile.width * tile.height; ++i) {
            const std::int64_t row = y * 256 + i / tile.width;
            const std::int64_t col = x * 256 + i % tile.width;
            const Found want = expected_cell(picture, level, row, col, stat);
            const float got = tile.cells[at(i)];
            nan += std::isnan(want.shown) ? 1U : 0U;
            const bool same = got == want.shown || (std::isnan(got) && std::isnan(want.shown)) ||
                              std::fabs(got - want.shown) <= want.spread;
            if (!same) {
              ADD_FAILURE() << what << " level " << level << " stat " << static_cast<int>(stat) << " cell "
                            << row << ',' << col << ": " << got << " and not " << want.shown;
              return compared;
            }
            ++compared;
          }
          EXPECT_EQ(tile.nan, nan) << what;
        }
      }
    }
  }
  return compared;
}

inline void expect_lines(const Pyramid& pyramid, const Picture& picture, const std::string& what) {
  for (const int axis : {0, 1}) {
    const Lines norms = pyramid.lines(axis, LineStat::norm);
    const Lines sizes = pyramid.lines(axis, LineStat::absmax);
    const std::int64_t count = axis == 0 ? picture.rows : picture.cols;
    EXPECT_TRUE(norms.exact && sizes.exact) << what;
    ASSERT_EQ(norms.points.size(), at((count + norms.step - 1) / norms.step)) << what;
    for (std::size_t i = 0; i < norms.points.size(); ++i) {
      double norm = 0;
      double most = 0;
      for (std::int64_t line = static_cast<std::int64_t>(i) * norms.step;
           line < std::min(count, static_cast<std::int64_t>(i + 1) * norms.step); ++line) {
        double squares = 0;
        for (std::int64_t k = 0; k < (axis == 0 ? picture.cols : picture.rows); ++k) {
          const double* value = axis == 0 ? picture.find(line, k) : picture.find(k, line);
          if (value == nullptr || std::isnan(*value)) continue;
          squares += *value * *value;
          most = std::max(most, std::fabs(*value));
        }
        norm = std::max(norm, std::sqrt(squares));
      }
      if (std::isinf(norm)) {
        ASSERT_EQ(norms.points[i], kInfinity) << what;
      } else {
        ASSERT_NEAR(norms.points[i], norm, 1e-6 * norm) << what << " axis " << axis << " line " << i;
      }
      ASSERT_EQ(sizes.points[i], static_cast<float>(most)) << what << " axis " << axis << " line " << i;
    }
  }
}

inline std::size_t expect_plane(const Plane& plane, const Picture& picture, const std::string& what) {
  const Pyramid whole = pyramid(plane);
  expect_lines(whole, picture, what);
  return expect_tiles(plane, plane, picture, what) + expect_tiles(whole, plane, picture, what + " (pyramid)");
}

inline Picture picture_of(const Tensor& matrix) {
  return {matrix.size(0), matrix.size(1), numbers_of(matrix)};
}

// Every way a matrix of that form can lie in memory.
inline std::vector<std::pair<std::string, Tensor>> layouts(DType dtype, std::int64_t rows,
                                                           std::int64_t cols) {
  std::vector<std::pair<std::string, Tensor>> all;
  all.emplace_back("row-major", some_tensor(dtype, {rows, cols}, 1));
  all.emplace_back("transposed", some_tensor(dtype, {cols, rows}, 2).t());
  all.emplace_back("part", some_tensor(dtype, {rows + 3, cols + 5}, 3).narrow(0, 2, rows).narrow(1, 3, cols));
  all.emplace_back("part of a transposed one",
                   some_tensor(dtype, {cols + 5, rows + 3}, 4).t().narrow(0, 1, rows).narrow(1, 4, cols));
  all.emplace_back("every other", some_tensor(dtype, {rows, 2 * cols}, 5).index({ellipsis, Slice{1, {}, 2}}));
  all.emplace_back("inner axes of four",
                   some_tensor(dtype, {2, rows, 2, cols}, 6).index({1, ellipsis, 1, Slice{}}));
  all.emplace_back("one row many times", some_tensor(dtype, {1, cols}, 7).expand({rows, cols}));
  return all;
}

}  // namespace ballast
