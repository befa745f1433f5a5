// SPDX-License-Identifier: Apache-2.0
#include "tensor/copy.h"

#include <algorithm>

#include "base/checked.h"
#include "base/sizes.h"
#include "base/thread_pool.h"
#include "tensor/copy_box.h"
#include "tensor/describe.h"
#include "tensor/layout.h"

namespace ballast {
namespace {

constexpr std::uint64_t kShareBytes = 1U << 20U;  // of output, for one thread at a time

constexpr std::uint64_t kRowsAtOnce = 1024;

struct Source {
  const std::byte* base;    // of the storage
  std::uint64_t first_bit;  // of the view's first element, from base
  std::uint64_t bits;
  Layout layout;
};

Source source_of(const Tensor& tensor) {
  if (!tensor.has_data()) static_cast<void>(tensor.data());  // throws
  if (tensor.device().type != DeviceType::cpu) {
    fail(Errc::unsupported, describe(tensor.dtype(), tensor.shape()), "lies in the memory of another device");
  }
  return {tensor.storage()->data(), tensor.bit_offset(), info(tensor.dtype()).bits,
          simplified(tensor.shape(), tensor.strides())};
}

void copy_range(const Source& source, std::uint64_t first, std::uint64_t count, std::byte* out,
                const CopyOptions& options) {
  if (source.bits % 8 != 0) {
    BitWriter writer(out);
    for_each_box(source.layout, first, count, [&](const Box& box) {
      const auto start =
          static_cast<std::int64_t>(source.first_bit) + box.offset * static_cast<std::int64_t>(source.bits);
      copy_bit_box(source.base, start, static_cast<int>(source.bits), box.axes, writer);
    });
    return writer.finish();
  }
  const auto size = static_cast<std::size_t>(source.bits / 8);
  const std::byte* start = source.base + source.first_bit / 8;
  for_each_box(source.layout, first, count, [&](const Box& box) {
    copy_box(start + box.offset * static_cast<std::int64_t>(size), size, box.axes, out + box.first * size,
             options);
  });
}

// How the output is dealt out: in whole units, at least `grain` of them to a thread.
struct Shares {
  std::uint64_t unit;  // elements; a multiple of 64, so that units begin on a byte in every dtype
  std::uint64_t grain;
};

Shares shares_of(const Source& source, std::uint64_t count) {
  const std::uint64_t piece = kShareBytes * 8 / source.bits / 64 * 64;
  if (source.layout.size() < 2) return {piece, 1};
  const std::uint64_t unit = static_cast<std::uint64_t>(source.layout.back().size) * kTileRows;
  if (unit > 16 * piece) return {piece, 1};
  // Transposes run faster the more rows they are given at once, up to about a thousand (measured); but every
  // thread should get some.
  const std::uint64_t units = (count - 1) / unit + 1;
  const std::uint64_t share = units / (static_cast<std::uint64_t>(thread_count()) * 2);
  return {unit, std::max(std::min(share, kRowsAtOnce / kTileRows), (piece - 1) / unit + 1)};
}

}  // namespace

void gather(const Tensor& source, std::uint64_t first, std::uint64_t count, std::byte* out) {
  if (!fits(first, count, static_cast<std::uint64_t>(source.numel())) ||
      first * info(source.dtype()).bits % 8 != 0) {
    fail(Errc::offset_out_of_range, describe(source.dtype(), source.shape()),
         "has no {} elements from {} on a byte", count, first);
  }
  if (count == 0) return;
  copy_range(source_of(source), first, count, out, {best_isa(), false});
}

void copy_contiguous_with(Isa isa, const Tensor& tensor, std::byte* out) {
  const auto count = static_cast<std::uint64_t>(tensor.numel());
  if (count == 0) return;
  if (tensor.has_data() && !tensor.storage()->ready() && tensor.is_contiguous()) {
    return tensor.read(
        0,
        {out, static_cast<std::size_t>(tensor.size_bytes())});  // made once, here, and not kept there as well
  }
  const Source source = source_of(tensor);
  const Shares shares = shares_of(source, count);
  const CopyOptions options{isa, tensor.size_bytes() >= kBeyondCaches};
  parallel_for((count - 1) / shares.unit + 1, shares.grain, [&](std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = begin * shares.unit;
    copy_range(source, first, std::min(end * shares.unit, count) - first, out + first * source.bits / 8,
               options);
  });
}

void copy_contiguous(const Tensor& source, std::byte* out) {
  copy_contiguous_with(best_isa(), source, out);
}

}  // namespace ballast
