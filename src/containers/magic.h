// SPDX-License-Identifier: Apache-2.0
// What a file that is not what it should be looks like, for messages: a Git LFS pointer, a web page, an
// archive.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::containers {

inline constexpr std::size_t kMagicBytes =
    512;  // how much of a file what_is_it() wants to see: a tar's first block

/// "a Git LFS pointer: run `git lfs pull` to get the file itself", "a zip archive (a PyTorch file?)", …;
/// empty when nothing fits.
[[nodiscard]] std::string_view what_is_it(std::span<const std::byte> first);

/// The first block of a tar archive, as Python's tarfile tells it: by its checksum, summed with or without
/// sign.
[[nodiscard]] bool is_tar(std::span<const std::byte> first);

/// Whether some loader of models or arrays reads such a file, or unpacks it first: a pickle, an archive,
/// HDF5, …
[[nodiscard]] bool is_data(std::span<const std::byte> first);

/// The first record of a zip archive, at the very beginning.
[[nodiscard]] bool is_zip(std::span<const std::byte> first) noexcept;

/// A record, or the end of an empty archive, at the very beginning.
[[nodiscard]] bool begins_like_zip(std::span<const std::byte> first);

/// Text that begins with a brace or a bracket.
[[nodiscard]] bool is_json_text(std::span<const std::byte> first);

}  // namespace ballast::containers

#pragma GCC visibility pop
