// SPDX-License-Identifier: Apache-2.0
#include "ops/packed.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ops/activation.h"
#include "ops/args.h"
#include "ops/kernels.h"
#include "ops/onednn.h"
#include "ops/parallel.h"
#include "tensor/resident.h"

namespace ballast::ops {
namespace {

constexpr std::int64_t kDepth = 512;  // rows of a panel that stay in the cache while tiles pass over them
constexpr std::int64_t kTilesAtOnce = 32;   // tiles that share one reading of a weight that lies in memory
constexpr std::int64_t kSlab = 1LL << 20U;  // values of the left side that are packed at once
constexpr std::int64_t kWidest = 32;        // columns of a tile, in any instruction set

std::int64_t up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t tiles_for(std::int64_t rows) {
  return (rows - 1) / kernels().tiles.rows + 1;
}

// The panel's columns that exist may be fewer than a tile's: those go through memory of their own.
void run_tile(const PackedRows& left, const PackedMatrix& b, std::int64_t stretch, std::int64_t tile,
              std::int64_t panel, const PanelOut& out) {
  const TileKernels& kernel = kernels().tiles;
  const std::int64_t first = left.first_row(tile);
  const auto rows = static_cast<std::size_t>(left.first_row(tile + 1) - first);
  const std::int64_t start = stretch * kDepth;
  const std::int64_t count = std::min(kDepth, b.rows - start);
  const float* right =
      data_of(b.panels) + start * up(b.columns, kernel.columns) + panel * count * kernel.columns;
  const float* values = left.at(stretch, tile);
  float* to = out.first + first * out.stride;
  const bool add = stretch > 0 || out.add;
  const std::int64_t width = std::min(kernel.columns, b.columns - panel * kernel.columns);
  if (width == kernel.columns) return kernel.of[rows - 1](count, values, right, to, out.stride, add);
  std::array<float, TileKernels::kMostRows * kWidest> apart;
  kernel.of[rows - 1](count, values, right, apart.data(), kernel.columns, false);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* from = apart.data() + static_cast<std::int64_t>(r) * kernel.columns;
    float* row = to + static_cast<std::int64_t>(r) * out.stride;
    for (std::int64_t j = 0; j < width; ++j) row[j] = add ? row[j] + from[j] : from[j];
  }
}

struct PackedProduct {
  const PackedRows& left;
  const PackedMatrix& b;
  const float* bias;
  float* out;  // of the first row
};

struct TileRange {
  std::int64_t begin;
  std::int64_t end;
};

// Whole sums of the rows of some tiles in the columns of some panels.
void run_tiles(const PackedProduct& product, TileRange tiles, TileRange panels, Activation activation) {
  const TileKernels& kernel = kernels().tiles;
  const std::int64_t columns = product.b.columns;
  const std::int64_t left = panels.begin * kernel.columns;
  const std::int64_t width = std::min(columns, panels.end * kernel.columns) - left;
  const TileRange rows{product.left.first_row(tiles.begin), product.left.first_row(tiles.end)};
  for (std::int64_t row = rows.begin; product.bias != nullptr && row < rows.end; ++row)
    std::memcpy(product.out + row * columns + left, product.bias + left,
                static_cast<std::size_t>(width) * sizeof(float));
  for (std::int64_t stretch = 0; stretch * kDepth < product.b.rows; ++stretch) {
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const PanelOut out{product.out + panel * kernel.columns, columns, product.bias != nullptr};
      for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile)
        run_tile(product.left, product.b, stretch, tile, panel, out);
    }
  }
  if (activation.kind == Activation::Kind::none) return;
  const ActivationKernel last = ops::kernel_of(activation);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float* to = product.out + row * columns + left;
    kernels().unary[static_cast<std::size_t>(last.which)](to, to, width, static_cast<float>(last.p),
                                                          static_cast<float>(last.q));
  }
}

// Blocks of tiles times stretches of panels: every thread gets a stretch, unless there are blocks for all.
void multiply_blocks(const PackedProduct& product, Activation activation) {
  const std::int64_t panels = (product.b.columns - 1) / kernels().tiles.columns + 1;
  const std::int64_t blocks = (product.left.tiles() - 1) / kTilesAtOnce + 1;
  const std::int64_t threads = usable_threads();
  const std::int64_t parts = blocks % threads == 0 ? 1 : std::min(threads, panels);
  const std::int64_t work = product.left.rows() * product.b.rows * product.b.columns;
  const std::int64_t grain = work < kThreadedProduct ? blocks * parts : 1;
  parallel(blocks * parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t tile = i % blocks * kTilesAtOnce;
      const std::int64_t part = i / blocks;
      run_tiles(product, {tile, std::min(tile + kTilesAtOnce, product.left.tiles())},
                {part * panels / parts, (part + 1) * panels / parts}, activation);
    }
  });
}

}  // namespace

std::int64_t PackedRows::floats_for(std::int64_t rows, std::int64_t depth) {
  return tiles_for(rows) * kernels().tiles.rows * depth;
}

PackedRows::PackedRows(std::int64_t rows, std::int64_t depth, float* memory)
    : rows_(rows), depth_(depth), height_(kernels().tiles.rows), tiles_(tiles_for(rows)), values_(memory) {}

float* PackedRows::at(std::int64_t stretch, std::int64_t tile) const {
  const std::int64_t begin = stretch * kDepth;
  return values_ + begin * tiles_ * height_ + tile * std::min(kDepth, depth_ - begin) * height_;
}

void PackedRows::fill(const float* from) const {
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(depth_ * height_, 1));
  parallel(tiles_, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t first = first_row(tile);
      const std::int64_t rows = first_row(tile + 1) - first;
      for (std::int64_t start = 0; start < depth_; start += kDepth) {
        float* to = at(start / kDepth, tile);
        const std::int64_t count = std::min(kDepth, depth_ - start);
        for (std::int64_t r = 0; r < rows; ++r) {
          const float* row = from + (first + r) * depth_ + start;
          for (std::int64_t i = 0; i < count; ++i) to[i * height_ + r] = row[i];
        }
      }
    }
  });
}

void PackedRows::put(std::int64_t row, std::int64_t column, const float* values, std::int64_t count) const {
  const std::int64_t tile = ((row + 1) * tiles_ - 1) / rows_;  // the last that begins at `row` or before
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t start = (column + i) % kDepth;
    const std::int64_t end = std::min(i + kDepth - start, count);
    float* to = at((column + i) / kDepth, tile) + start * height_ + row - first_row(tile);
    for (; i < end; ++i, to += height_) *to = values[i];
  }
}

std::int64_t panel_columns() {
  return kernels().tiles.columns;
}

void multiply_panel(const PackedRows& a, const PackedMatrix& b, std::int64_t panel, const PanelOut& out) {
  for (std::int64_t stretch = 0; stretch * kDepth < b.rows; ++stretch) {
    for (std::int64_t tile = 0; tile < a.tiles(); ++tile) run_tile(a, b, stretch, tile, panel, out);
  }
}

bool has_fast_tiles() {
  return isa_in_use() != Isa::scalar;
}

PackedMatrix packed(const Tensor& matrix) {
  const std::int64_t rows = matrix.shape()[0];
  const std::int64_t columns = matrix.shape()[1];
  const std::int64_t width = kernels().tiles.columns;
  const std::int64_t down = matrix.strides()[0];
  const std::int64_t across = matrix.strides()[1];
  Tensor panels = Tensor::empty(DType::f32, {rows, up(columns, width)});
  const float* from = data_of(matrix);
  float* to = data_of(panels);
  parallel(up(columns, width) / width, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t used = std::min(width, columns - panel * width);
      for (std::int64_t start = 0; start < rows; start += kDepth) {
        const std::int64_t count = std::min(kDepth, rows - start);
        float* block = to + start * up(columns, width) + panel * count * width;
        const float* corner = from + start * down + panel * width * across;
        if (used < width) std::fill_n(block, count * width, 0.0F);
        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t j = 0; j < used; ++j) block[i * width + j] = corner[i * down + j * across];
        }
      }
    }
  });
  return {rows, columns, std::move(panels)};
}

PackedMatrix packed_weight(const char* op, const Tensor& weight) {
  PackedMatrix made = packed(floats(op, weight));
  give_back_pages(weight);
  return made;
}

void multiply(const float* a, std::int64_t rows, const PackedMatrix& b, const float* bias,
              Activation activation, float* out) {
  const std::int64_t height = kernels().tiles.rows;
  const std::int64_t at_once = up(std::max(kSlab / std::max<std::int64_t>(b.rows, 1), height), height);
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const std::int64_t count = std::min(at_once, rows - row);
    const auto bytes = static_cast<std::size_t>(PackedRows::floats_for(count, b.rows)) * sizeof(float);
    const PackedRows left(count, b.rows, static_cast<float*>(scratch_of(bytes)));
    left.fill(a + row * b.rows);
    multiply_blocks({left, b, bias, out + row * b.columns}, activation);
  }
}

}  // namespace ballast::ops
