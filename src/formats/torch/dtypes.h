// SPDX-License-Identifier: Apache-2.0
// Element types as PyTorch's classes and dtypes name and count them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ballast/dtype.h"

namespace ballast::torch {

/// "torch.float16", "float16", "torch.half" → its dtype.
[[nodiscard]] std::optional<DType> dtype_of_torch_name(std::string_view name) noexcept;
/// Bytes of one element as PyTorch counts them; sub-byte types are packed into bytes of their own.
[[nodiscard]] std::uint64_t item_bytes(DType dtype) noexcept;
/// Of a storage: untyped ones are counted in bytes.
[[nodiscard]] std::uint64_t item_bytes(std::optional<DType> dtype) noexcept;
/// Bytes of a storage of so many elements; nullopt when 63 bits cannot count them.
[[nodiscard]] std::optional<std::uint64_t> storage_bytes(std::optional<DType> dtype,
                                                         std::int64_t numel) noexcept;
/// Bytes that change places together when the byte order changes: of a complex number those of each part.
[[nodiscard]] std::uint64_t swap_unit(DType dtype) noexcept;

}  // namespace ballast::torch
