// SPDX-License-Identifier: Apache-2.0
#include "tensor/copy_box.h"

#include <cstdlib>
#include <cstring>
#include <optional>

#include "tensor/stream_copy.h"
#include "tensor/transpose.h"

namespace ballast {
namespace {

constexpr std::size_t kStreamedRun = 16U << 10U;  // shorter runs lose more at their ends than they gain

// Calls visit(offset) for every index of axes[0, depth), in row-major order; offsets in elements.
template <class Visit>
void for_each_row(const Layout& axes, std::size_t depth, std::int64_t offset, std::size_t dim,
                  const Visit& visit) {
  if (dim == depth) return visit(offset);
  for (std::int64_t i = 0; i < axes[dim].size; ++i)
    for_each_row(axes, depth, offset + i * axes[dim].stride, dim + 1, visit);
}

template <std::size_t kSize>
void copy_strided(const std::byte* in, const Layout& axes, std::byte* out) {
  const Axis row = axes.back();
  const std::int64_t step = row.stride * static_cast<std::int64_t>(kSize);
  for_each_row(axes, axes.size() - 1, 0, 0, [&](std::int64_t offset) {
    const std::byte* from = in + offset * static_cast<std::int64_t>(kSize);
    for (std::int64_t i = 0; i < row.size; ++i, out += kSize) std::memcpy(out, from + i * step, kSize);
  });
}

void copy_bytes(const std::byte* in, std::byte* out, std::size_t size, const CopyOptions& options) {
  if (options.stream && size >= kStreamedRun)
    stream_copy(options.isa, in, out, size);
  else
    std::memcpy(out, in, size);
}

void copy_runs(const std::byte* in, std::size_t size, const Layout& axes, std::byte* out,
               const CopyOptions& options) {
  const auto run = static_cast<std::size_t>(axes.back().size) * size;
  for_each_row(axes, axes.size() - 1, 0, 0, [&](std::int64_t offset) {
    copy_bytes(in + offset * static_cast<std::int64_t>(size), out, run, options);
    out += run;
  });
}

// The axis to tile together with the innermost: the one along which the source moves least. None when the
// innermost is that itself.
std::optional<std::size_t> tiling_axis(const Layout& axes) {
  const auto distance = [&](std::size_t i) { return std::abs(axes[i].stride); };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    if (axes[i].stride != 0 && (!best || distance(i) < distance(*best))) best = i;
  }
  const bool worth_it =
      best && distance(*best) < distance(axes.size() - 1) && axes[*best].size >= 4 && axes.back().size >= 4;
  return worth_it ? best : std::nullopt;
}

void copy_planes(const std::byte* in, std::size_t size, const Layout& axes, std::size_t tiled, std::byte* out,
                 const CopyOptions& options) {
  const auto bytes = static_cast<std::int64_t>(size);
  std::int64_t pitch = bytes;
  for (std::size_t i = tiled + 1; i < axes.size(); ++i) pitch *= axes[i].size;

  // Every axis but the two, with the output's stride beside the source's.
  struct Pair {
    std::int64_t size, in, out;
  };

  std::vector<Pair> others;
  std::int64_t out_step = bytes;
  for (std::size_t i = axes.size(); i-- > 0; out_step *= axes[i].size) {
    if (i != tiled && i + 1 != axes.size())
      others.push_back({axes[i].size, axes[i].stride * bytes, out_step});
  }
  StridedRows plane{in,
                    axes[tiled].stride * bytes,
                    axes.back().stride * bytes,
                    out,
                    pitch,
                    axes[tiled].size,
                    axes.back().size};
  std::vector<std::int64_t> at(others.size(), 0);
  for (;;) {
    copy_plane(plane, size, options.isa, options.stream);
    std::size_t k = 0;
    for (; k < others.size(); ++k) {
      plane.in += others[k].in;
      plane.out += others[k].out;
      if (++at[k] < others[k].size) break;
      plane.in -= others[k].in * others[k].size;
      plane.out -= others[k].out * others[k].size;
      at[k] = 0;
    }
    if (k == others.size()) return;
  }
}

}  // namespace

void copy_box(const std::byte* in, std::size_t size, const Layout& axes, std::byte* out,
              const CopyOptions& options) {
  if (axes.empty()) return static_cast<void>(std::memcpy(out, in, size));
  if (axes.back().stride == 1) return copy_runs(in, size, axes, out, options);
  if (const auto tiled = tiling_axis(axes)) return copy_planes(in, size, axes, *tiled, out, options);
  switch (size) {
    case 1:
      return copy_strided<1>(in, axes, out);
    case 2:
      return copy_strided<2>(in, axes, out);
    case 4:
      return copy_strided<4>(in, axes, out);
    case 8:
      return copy_strided<8>(in, axes, out);
    case 16:
      return copy_strided<16>(in, axes, out);
    default:
      break;  // there is no dtype of another size
  }
}

void copy_bit_box(const std::byte* base, std::int64_t start, int bits, const Layout& axes,
                  BitWriter& writer) {
  const Axis row = axes.empty() ? Axis{1, 1} : axes.back();
  for_each_row(axes, axes.empty() ? 0 : axes.size() - 1, 0, 0, [&](std::int64_t offset) {
    std::int64_t i = 0;
    std::int64_t bit = start + offset * bits;
    if (row.stride == 1 && bit % 8 == 0 && writer.on_byte()) {
      const std::int64_t bytes = row.size * bits / 8 / bits * bits;  // of whole groups of eight elements
      writer.put_bytes(base + bit / 8, static_cast<std::size_t>(bytes));
      i = bytes * 8 / bits;
      bit += bytes * 8;
    }
    for (; i < row.size; ++i, bit += row.stride * bits) {
      auto window = std::to_integer<std::uint32_t>(base[bit / 8]);
      if (bit % 8 + bits > 8) window |= std::to_integer<std::uint32_t>(base[bit / 8 + 1]) << 8U;
      writer.put(window >> (bit % 8) & ((1U << bits) - 1), bits);
    }
  });
}

}  // namespace ballast
