// SPDX-License-Identifier: Apache-2.0
#include "tensor/cast.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/sizes.h"
#include "base/thread_pool.h"
#include "tensor/cast_kernels.h"

namespace ballast {
namespace {

constexpr std::uint64_t kGroup =
    2048;  // elements that pass through the hub at once: they stay in the first cache
constexpr std::uint64_t kGroupsPerThread = 64;  // fewer are not worth a thread's waking

struct Cast {
  CastKernel widen;  // null when the source is its own hub
  CastKernel round;  // null when the target is the hub
  std::uint64_t from_bits;
  std::uint64_t to_bits;
  bool stream;
};

void cast_range(const Cast& cast, const std::byte* in, std::byte* out, std::uint64_t count) {
  const PlainFloatingPoint guard;
  if (cast.widen == nullptr) return cast.round(in, out, count, cast.stream);
  if (cast.round == nullptr) return cast.widen(in, out, count, cast.stream);
  alignas(64) std::byte hub[kGroup * 8];
  for (std::uint64_t done = 0; done < count; done += kGroup) {
    const std::uint64_t piece = std::min(kGroup, count - done);
    cast.widen(in + done * cast.from_bits / 8, hub, piece, false);
    cast.round(hub, out + done * cast.to_bits / 8, piece, cast.stream);
  }
}

}  // namespace

void cast_elements_with(Isa isa, DType from, const std::byte* in, DType to, std::byte* out,
                        std::uint64_t count) {
  if (!is_real(from) || !is_real(to)) {
    fail(Errc::bad_dtype, "cast", "there is no cast from {} to {}", info(from).code, info(to).code);
  }
  if (count == 0) return;
  if (from == to) return static_cast<void>(std::memcpy(out, in, (count * info(to).bits + 7) / 8));
  const DType hub = hub_of(from);
  Cast cast{widening_kernel(from, isa), rounding_kernel(hub, to, isa), info(from).bits, info(to).bits, false};
  if (hub != DType::f32 && is_floating(to) && info(to).bits <= 16)
    cast = {odd_kernel(from, to, isa), rounding_kernel(DType::f32, to, isa), info(from).bits, info(to).bits,
            false};
  if (const CastKernel direct = direct_kernel(from, to, isa)) {
    cast.widen = direct;
    cast.round = nullptr;
  }
  cast.stream = count * cast.to_bits / 8 >= kBeyondCaches;
  // Pieces are whole groups, so that each begins on a byte in every dtype.
  parallel_for((count - 1) / kGroup + 1, kGroupsPerThread, [&](std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = begin * kGroup;
    cast_range(cast, in + first * cast.from_bits / 8, out + first * cast.to_bits / 8,
               std::min(end * kGroup, count) - first);
  });
}

void cast_elements(DType from, const std::byte* in, DType to, std::byte* out, std::uint64_t count) {
  cast_elements_with(best_isa(), from, in, to, out, count);
}

}  // namespace ballast
