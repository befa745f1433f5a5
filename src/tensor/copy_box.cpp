// SPDX-License-Identifier: Apache-2.0
#include "tensor/copy_box.h"

#include <array>
#include <cstring>
#include <type_traits>

namespace ballast {
namespace {

template <std::size_t kSize>
struct Block {
  std::array<std::byte, kSize> bytes;
};

// Calls visit(offset) for every index of axes[0, depth), in row-major order; offsets in elements.
template <class Visit>
void for_each_row(const Layout& axes, std::size_t depth, std::int64_t offset, std::size_t dim, const Visit& visit) {
  if (dim == depth) return visit(offset);
  for (std::int64_t i = 0; i < axes[dim].size; ++i) for_each_row(axes, depth, offset + i * axes[dim].stride, dim + 1, visit);
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

void copy_runs(const std::byte* in, std::size_t size, const Layout& axes, std::byte* out) {
  const auto run = static_cast<std::size_t>(axes.back().size) * size;
  for_each_row(axes, axes.size() - 1, 0, 0, [&](std::int64_t offset) {
    std::memcpy(out, in + offset * static_cast<std::int64_t>(size), run);
    out += run;
  });
}

}  // namespace

void copy_box(const std::byte* in, std::size_t size, const Layout& axes, std::byte* out, const CopyOptions& /*options*/) {
  if (axes.empty()) return static_cast<void>(std::memcpy(out, in, size));
  if (axes.back().stride == 1) return copy_runs(in, size, axes, out);
  switch (size) {
    case 1: return copy_strided<1>(in, axes, out);
    case 2: return copy_strided<2>(in, axes, out);
    case 4: return copy_strided<4>(in, axes, out);
    case 8: return copy_strided<8>(in, axes, out);
    case 16: return copy_strided<16>(in, axes, out);
    default: break;  // there is no dtype of another size
  }
}

void copy_bit_box(const std::byte* base, std::int64_t start, int bits, const Layout& axes, BitWriter& writer) {
  for_each_row(axes, axes.size(), 0, 0, [&](std::int64_t offset) {
    const std::int64_t bit = start + offset * bits;
    std::uint32_t window = std::to_integer<std::uint32_t>(base[bit / 8]);
    if (bit % 8 + bits > 8) window |= std::to_integer<std::uint32_t>(base[bit / 8 + 1]) << 8U;
    writer.put(window >> (bit % 8) & ((1U << bits) - 1), bits);
  });
}

}  // namespace ballast
