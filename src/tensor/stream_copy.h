// SPDX-License-Identifier: Apache-2.0
// memcpy past the cache, for pieces of something large: memcpy itself only does that when one call is large.
#pragma once

#include <cstddef>

#include "tensor/isa.h"

namespace ballast {

/// `lines` whole cache lines to `out`, which begins one. Call stream_fence() after the last of many: others
/// may not see the bytes before.
void stream_lines(Isa isa, const std::byte* in, std::byte* out, std::size_t lines);
void stream_fence() noexcept;

void stream_copy(Isa isa, const std::byte* in, std::byte* out, std::size_t size);

}  // namespace ballast
