// SPDX-License-Identifier: Apache-2.0
// Sparse tensors, as the dense ones they stand for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "formats/onnx/model.h"

namespace ballast::onnx_file {

/// Errc::size_overflow, unsupported.
[[nodiscard]] std::uint64_t dense_bytes(const SparseDescription& sparse, const std::string& where);

/// Computed at the first data(); indices are checked at once, for which they are read. Errc::size_mismatch
/// when values, indices and shape do not agree, offset_out_of_range, bad_dtype.
[[nodiscard]] std::shared_ptr<const Storage> dense_storage(const SparseDescription& sparse,
                                                           std::shared_ptr<const Storage> values,
                                                           std::shared_ptr<const Storage> indices,
                                                           const std::string& where);

}  // namespace ballast::onnx_file
