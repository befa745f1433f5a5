// SPDX-License-Identifier: Apache-2.0
#include "ops/winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/args.h"
#include "ops/bounds.h"
#include "ops/onednn.h"
#include "ops/packed.h"
#include "ops/parallel.h"

namespace ballast::ops {
namespace {

using Count = std::int64_t;

constexpr Count kValues = 16;        // that a patch becomes
constexpr Count kWidestVector = 16;  // in any instruction set
constexpr Count kFewest = 32;        // patches below which a thread is not given some of its own

Count rounded_up(Count value, Count unit) {
  return (value + unit - 1) / unit * unit;
}

Count pieces_of(Count value, Count size) {
  return (value + size - 1) / size;
}

struct Image {
  Count height;
  Count width;
  Count channels;
  ImageSteps steps;
  Count size;  // floats of one image
};

Image image_of(const Shape& shape, bool blocks) {
  const Count vector = kernels().winograd.vector;
  const Count pixel = blocks ? vector : shape[1];
  return {shape[2],
          shape[3],
          shape[1],
          {shape[3] * pixel, pixel, blocks ? shape[2] * shape[3] * vector : vector},
          shape[1] * shape[2] * shape[3]};
}

// A convolution, and where its patches lie. They are counted row by row, image by image.
struct Work {
  Image in;
  Image out;
  Count top;   // rows of padding
  Count left;  // columns
  Count down;
  Count across;
  Count patches;
  const float* weight;
  ResultLimits limits;
  WinogradImages images;
};

// Corners of the results of one patch.
struct Place {
  Count image;
  Count row;
  Count column;
};

Place place_of(const Work& work, Count patch) {
  const Count in_image = patch % (work.down * work.across);
  return {patch / (work.down * work.across), 2 * (in_image / work.across), 2 * (in_image % work.across)};
}

// Memory for `most` patches at once: 16 sets of what they become, and 16 of their products. Sets begin one
// line of the cache further than a power of two may have it, or all 16 would meet in the same lines.
struct Room {
  static constexpr Count kApart = 16;
  Count in_set;
  Count out_set;
  Count out_row;
  float* in;
  float* out;

  static Count outputs(const Work& work) { return rounded_up(work.out.channels, panel_columns()); }

  static Count floats(const Work& work, Count most) {
    return kValues * (most * (work.in.channels + outputs(work)) + 2 * kApart);
  }

  Room(const Work& work, Count most)
      : in_set(most * work.in.channels + kApart),
        out_set(most * outputs(work) + kApart),
        out_row(outputs(work)),
        in(static_cast<float*>(scratch_of(static_cast<std::size_t>(floats(work, most)) * sizeof(float)))),
        out(in + kValues * in_set) {}
};

// The part of a patch that lies in the image, one vector of channels; what does not is zero.
void copy_patch(const Image& image, const float* from, Count y, Count x, float* to) {
  const Count vector = kernels().winograd.vector;
  std::fill_n(to, kValues * vector, 0.0F);
  for (Count i = std::max<Count>(0, -y); i < std::min<Count>(4, image.height - y); ++i)
    for (Count j = std::max<Count>(0, -x); j < std::min<Count>(4, image.width - x); ++j)
      std::memcpy(to + (4 * i + j) * vector, from + (y + i) * image.steps.row + (x + j) * image.steps.pixel,
                  static_cast<std::size_t>(vector) * sizeof(float));
}

// Patches [begin, end) behind `first`.
void patches_in(const Work& work, const Room& room, Count first, Count begin, Count end) {
  const WinogradKernels& kernel = kernels().winograd;
  const Image& image = work.in;
  const Count vectors = image.channels / kernel.vector;
  std::array<float, kValues * kWidestVector> edge;
  for (Count i = begin; i < end; ++i) {
    const Place place = place_of(work, first + i);
    const Count y = place.row - work.top;
    const Count x = place.column - work.left;
    const float* from = work.images.in + place.image * image.size;
    float* to = room.in + i * image.channels;
    if (y >= 0 && x >= 0 && y + 4 <= image.height && x + 4 <= image.width) {
      kernel.in(from + y * image.steps.row + x * image.steps.pixel, image.steps, vectors, to, room.in_set);
      continue;
    }
    for (Count v = 0; v < vectors; ++v) {
      copy_patch(image, from + v * image.steps.vector, y, x, edge.data());
      kernel.in(edge.data(), {4 * kernel.vector, kernel.vector, 0}, 1, to + v * kernel.vector, room.in_set);
    }
  }
}

void patches_out(const Work& work, const Room& room, Count first, Count begin, Count end) {
  const WinogradKernels& kernel = kernels().winograd;
  const Image& image = work.out;
  const Count vectors = image.channels / kernel.vector;
  std::array<float, 4 * kWidestVector> edge;
  for (Count i = begin; i < end; ++i) {
    const Place place = place_of(work, first + i);
    const float* from = room.out + i * room.out_row;
    float* to = work.images.out + place.image * image.size + place.row * image.steps.row +
                place.column * image.steps.pixel;
    const Count rows = std::min<Count>(2, image.height - place.row);
    const Count columns = std::min<Count>(2, image.width - place.column);
    if (rows == 2 && columns == 2) {
      kernel.out(from, room.out_set, vectors, work.limits, to, image.steps);
      continue;
    }
    ResultLimits limits = work.limits;
    for (Count v = 0; v < vectors; ++v) {
      kernel.out(from + v * kernel.vector, room.out_set, 1, limits, edge.data(),
                 {2 * kernel.vector, kernel.vector, 0});
      if (limits.bias != nullptr) limits.bias += kernel.vector;
      for (Count r = 0; r < rows; ++r)
        for (Count c = 0; c < columns; ++c)
          std::memcpy(to + v * image.steps.vector + r * image.steps.row + c * image.steps.pixel,
                      edge.data() + (2 * r + c) * kernel.vector,
                      static_cast<std::size_t>(kernel.vector) * sizeof(float));
    }
  }
}

// Products [begin, end) of the 16 × panels there are, of `count` patches, in tiles of equal height or one
// less.
void multiply_sets(const Work& work, const Room& room, Count count, Count begin, Count end) {
  const Kernels& kernel = kernels();
  const Count columns = kernel.tiles.columns;
  const Count panels = room.out_row / columns;
  const Count tiles = pieces_of(count, kernel.tiles.rows);
  const Count depth = work.in.channels;
  for (Count i = begin; i < end; ++i) {
    const float* from = room.in + i / panels * room.in_set;
    float* to = room.out + i / panels * room.out_set + i % panels * columns;
    for (Count tile = 0; tile < tiles; ++tile) {
      const Count row = tile * count / tiles;
      const auto rows = static_cast<std::size_t>((tile + 1) * count / tiles - row);
      kernel.winograd.tile[rows - 1](depth, from + row * depth, depth, work.weight + i * depth * columns,
                                     to + row * room.out_row, room.out_row);
    }
  }
}

Count products_of(const Room& room) {
  return kValues * (room.out_row / panel_columns());
}

// Enough patches for every thread: each has its own, and memory of its own.
void each_its_own(const Work& work, Count threads) {
  constexpr Count kLargeWeight = Count{1} << 17U;  // values of one of the 16 that a near cache does not hold
  constexpr Count kMostFloats = Count{1} << 20U;   // 4 MiB a thread
  const Count wanted = work.in.channels * work.out.channels > kLargeWeight ? 96 : 48;
  const Count most = std::clamp(kMostFloats / Room::floats(work, 1), Count{12}, wanted);
  const Count turns = pieces_of(work.patches, threads * most);
  const Count at_once = pieces_of(work.patches, threads * turns);
  parallel(pieces_of(work.patches, at_once), 1, [&](Count begin, Count end) {
    const Room room(work, at_once);
    for (Count first = begin * at_once; first < std::min(end * at_once, work.patches); first += at_once) {
      const Count count = std::min(at_once, work.patches - first);
      patches_in(work, room, first, 0, count);
      multiply_sets(work, room, count, 0, products_of(room));
      patches_out(work, room, first, 0, count);
    }
  });
}

// Few patches: the threads share what is to be done with them, one step after the other.
void together(const Work& work) {
  constexpr Count kMostFloats = Count{1} << 21U;
  const Count each = Room::floats(work, 1);
  const Count at_once = std::min(work.patches, std::max<Count>(kFewest, kMostFloats / each));
  const Room room(work, at_once);
  for (Count first = 0; first < work.patches; first += at_once) {
    const Count count = std::min(at_once, work.patches - first);
    parallel(count, 1, [&](Count begin, Count end) { patches_in(work, room, first, begin, end); });
    parallel(products_of(room), 1,
             [&](Count begin, Count end) { multiply_sets(work, room, count, begin, end); });
    parallel(count, 1, [&](Count begin, Count end) { patches_out(work, room, first, begin, end); });
  }
}

// G g Gᵀ, with G = [1 0 0; ½ ½ ½; ½ -½ ½; 0 0 1], in double.
void transform_filter(const float* filter, std::array<float, kValues>& to) {
  std::array<double, 12> rows;
  for (std::size_t x = 0; x < 3; ++x) {
    const double a = filter[x];
    const double b = filter[3 + x];
    const double c = filter[6 + x];
    rows[x] = a;
    rows[3 + x] = (a + b + c) / 2;
    rows[6 + x] = (a - b + c) / 2;
    rows[9 + x] = c;
  }
  for (std::size_t y = 0; y < 4; ++y) {
    const double a = rows[3 * y];
    const double b = rows[3 * y + 1];
    const double c = rows[3 * y + 2];
    to[4 * y] = static_cast<float>(a);
    to[4 * y + 1] = static_cast<float>((a + b + c) / 2);
    to[4 * y + 2] = static_cast<float>((a - b + c) / 2);
    to[4 * y + 3] = static_cast<float>(c);
  }
}

}  // namespace

bool fits_winograd(const ConvShapes& shapes, const Shape& input) {
  const auto all = [](const Dims& dims, Count number) {
    return dims.size() == 2 && dims[0] == number && dims[1] == number;
  };
  if (!has_fast_tiles() || input.size() != 4 || shapes.groups != 1 || !all(shapes.kernel, 3) ||
      !all(shapes.stride, 1) || !all(shapes.dilation, 1))
    return false;
  const Count vector = kernels().winograd.vector;
  const Shape& out = shapes.output;
  const Count patches = out[0] * pieces_of(out[2], 2) * pieces_of(out[3], 2);
  // Few channels are little to multiply for many sums, few patches for weights that are 16/9 as large; and
  // what hangs over an odd edge is computed for nothing.
  return shapes.in_channels % vector == 0 && out[1] % panel_columns() == 0 && patches >= 24 &&
         patches * 4 * 2 <= out[0] * out[2] * out[3] * 3;
}

bool stays_finite_by_patches(double bound) {
  constexpr double kGrowth = 36;  // four pixels a value, nine values a result
  return stays_finite(bound * kGrowth);
}

WinogradWeight winograd_weight(const Tensor& weight) {
  const Count outs = weight.shape()[0];
  const Count ins = weight.shape()[1];
  const Count columns = panel_columns();
  const Count panels = pieces_of(outs, columns);
  Tensor made = Tensor::empty(DType::f32, {kValues, panels, ins, columns});
  const float* from = data_of(weight);
  float* to = data_of(made);
  parallel(panels * ins, 64, [&](Count begin, Count end) {
    std::array<float, kValues> values;
    for (Count i = begin; i < end; ++i) {
      const Count first = i / ins * columns;
      for (Count j = 0; j < columns; ++j) {
        if (first + j < outs)
          transform_filter(from + ((first + j) * ins + i % ins) * 9, values);
        else
          values.fill(0);
        for (Count v = 0; v < kValues; ++v)
          to[(v * panels * ins + i) * columns + j] = values[static_cast<std::size_t>(v)];
      }
    }
  });
  return {made};
}

void winograd(const ConvShapes& shapes, const Shape& input, const WinogradWeight& weight, ResultLimits limits,
              const WinogradImages& images) {
  const Shape& out = shapes.output;
  const Count down = pieces_of(out[2], 2);
  const Count across = pieces_of(out[3], 2);
  const Work work{image_of(input, images.blocks),
                  image_of(out, images.blocks),
                  shapes.before[0],
                  shapes.before[1],
                  down,
                  across,
                  out[0] * down * across,
                  data_of(weight.panels),
                  limits,
                  images};
  const Count threads = usable_threads();
  if (threads == 1 || work.patches >= threads * kFewest)
    each_its_own(work, threads);
  else
    together(work);
}

}  // namespace ballast::ops
