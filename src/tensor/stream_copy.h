// SPDX-License-Identifier: Apache-2.0
// memcpy past the cache, for pieces of something large: memcpy itself only does that when one call is large.
#pragma once

#include <cstddef>

#include "tensor/isa.h"

namespace ballast {

void stream_copy(Isa isa, const std::byte* in, std::byte* out, std::size_t size);

}  // namespace ballast
