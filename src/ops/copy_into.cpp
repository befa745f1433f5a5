// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_into.h"

#include <algorithm>
#include <cstring>

#include "ops/args.h"
#include "ops/walk.h"

namespace ballast::ops {

void require_movable(const char* op, const Tensor& x) {
  require_defined(op, x);
  if (info(x.dtype()).bits % 8 != 0)
    fail(Errc::bad_dtype, op, "does not move elements of less than a byte: {}", form(x));
}

void copy_into(const Tensor& from, Tensor to) {
  if (to.numel() == 0) return;
  const Tensor source = aligned(from);
  const Walk walk{&to, &source};
  const Offsets step = walk.row_strides();
  with_element_type(to.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto* in = reinterpret_cast<const T*>(source.data());
    std::byte* const bytes = to.mutable_data();
    auto* out = reinterpret_cast<T*>(bytes);
    const bool at_odd_place = !is_aligned(to);
    walk.rows([&](const Offsets& at, std::int64_t n) {
      if (at_odd_place) {
        for (std::int64_t i = 0; i < n; ++i)
          std::memcpy(bytes + (at[0] + i * step[0]) * static_cast<std::int64_t>(sizeof(T)),
                      in + at[1] + i * step[1], sizeof(T));
      } else if (step[0] == 1 && step[1] == 1) {
        std::memcpy(out + at[0], in + at[1], static_cast<std::size_t>(n) * sizeof(T));
      } else if (step[0] == 1 && step[1] == 0) {
        std::fill_n(out + at[0], n, in[at[1]]);
      } else {
        for (std::int64_t i = 0; i < n; ++i) out[at[0] + i * step[0]] = in[at[1] + i * step[1]];
      }
    });
  });
}

}  // namespace ballast::ops
