// SPDX-License-Identifier: Apache-2.0
// NumPy's files: one array (.npy) and zip archives of them (.npz), to and from Checkpoints.
// docs/formats/npz.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "tensor/source_storage.h"

namespace ballast::npy {

/// What the header of an array says.
struct Header {
  DType dtype;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::uint64_t data = 0;  ///< where the elements begin
};

/// How much of an array header_of() may want to see.
inline constexpr std::size_t kMaxHeaderBytes = 12 + 10'000;

/// From the first bytes of an array of `size` bytes in all, which must be exactly what the header says.
/// Errc::bad_npy, header_too_large, unsupported (objects, text, structs, dates), size_mismatch, truncated.
[[nodiscard]] Header header_of(std::span<const std::byte> first, std::uint64_t size,
                               const std::string& where);

/// The header np.save would write. Errc::not_representable, naming the tensor, for dtypes NumPy lacks.
[[nodiscard]] std::string header_text(const Entry& entry, const std::string& where);

[[nodiscard]] bool is_npy(std::span<const std::byte> head) noexcept;
/// A zip archive whose first entry is an array, or an empty one.
[[nodiscard]] bool is_npz(std::span<const std::byte> head) noexcept;

/// One tensor, called like the file, without its extension.
[[nodiscard]] Checkpoint open_npy(const ByteSource& source);
[[nodiscard]] Checkpoint open_npz(const ByteSource& source);

void save_npy(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);
void save_npz(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);

}  // namespace ballast::npy
