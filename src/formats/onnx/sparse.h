// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: what a file says of them, and the dense ones they stand for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "formats/onnx/model.h"

namespace ballast::onnx_file {

/// A message. Errc::bad_onnx without one of its parts, or with one twice; size_overflow, too_many.
[[nodiscard]] SparseDescription read_sparse(WireReader& wire, Range message);

/// Errc::size_overflow, unsupported.
[[nodiscard]] std::uint64_t dense_bytes(const SparseDescription& sparse, const std::string& where);

/// Computed at the first data(); indices are checked at once, for which they are read. Errc::size_mismatch
/// when values, indices and shape do not agree, offset_out_of_range, bad_dtype.
[[nodiscard]] std::shared_ptr<const Storage> dense_storage(const SparseDescription& sparse,
                                                           std::shared_ptr<const Storage> values,
                                                           std::shared_ptr<const Storage> indices,
                                                           const std::string& where);

}  // namespace ballast::onnx_file
