// SPDX-License-Identifier: Apache-2.0
// Burn's own files: NamedMpk records (.mpk, .mpk.gz) and Burnpack (.bpk), to and from Checkpoints.
// docs/formats/burn.md has the bytes and the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "base/budget.h"
#include "tensor/source_storage.h"

namespace ballast::burn {

inline constexpr int kMaxDepth = 128;  // of maps and arrays inside each other, both formats

// Burnpack's limits, which Burn's reader enforces: what is beyond them is neither read nor written.
inline constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{100} << 20U;
inline constexpr std::uint64_t kMaxTensors = 100'000;
inline constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{10} << 30U;
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{100} << 30U;
inline constexpr std::uint64_t kAlignment = 256;

[[nodiscard]] bool is_mpk(std::span<const std::byte> head) noexcept;
[[nodiscard]] bool is_bpk(std::span<const std::byte> head) noexcept;

/// `budget`: what is left for the names and values of the file it comes from.
[[nodiscard]] Checkpoint open_mpk(const ByteSource& source, Budget budget);
[[nodiscard]] Checkpoint open_bpk(const ByteSource& source);

void save_mpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options, bool gzip);
void save_bpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);

}  // namespace ballast::burn
