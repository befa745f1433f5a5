// SPDX-License-Identifier: Apache-2.0
// What a record says of itself in its metadata (docs/formats/record.md): the one place that knows the keys.
#pragma once

#include <string>
#include <string_view>

#include "ballast/checkpoint.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::record {

inline constexpr int kVersion = 1;  // the newest this library reads, and the one it writes

inline constexpr const char* kVersionKey = "ballast.record";
inline constexpr const char* kProducerKey = "ballast.producer";
inline constexpr const char* kPrecisionKey = "ballast.precision";
inline constexpr const char* kChecksumsKey = "ballast.xxh3";
inline constexpr const char* kConfigKey = "ballast.config";
inline constexpr const char* kConfigTypeKey = "ballast.config_type";

/// Null when the metadata has no such key.
[[nodiscard]] const std::string* find(const Checkpoint& checkpoint, const std::string& key);

[[nodiscard]] bool is_record(const Checkpoint& checkpoint);
/// False for a record of a version that is not known yet.
[[nodiscard]] bool is_readable(const Checkpoint& checkpoint);
/// Errc::unsupported when it is not.
void require_readable(const Checkpoint& checkpoint);

/// What a record says about its precision: "full", "half", "bf16", "double", or a dtype's code.
[[nodiscard]] std::string precision_name(DType dtype);

/// What one record says of itself and nothing else can: its version, who made it, its checksums.
[[nodiscard]] bool is_of_file(std::string_view key) noexcept;
/// For steps that change what the checksums are about: a record it is no more.
void forget_checksums(Checkpoint& checkpoint);

/// The same without what only a record may say: for writers of other files.
[[nodiscard]] Checkpoint without_record_metadata(const Checkpoint& in);

}  // namespace ballast::record

#pragma GCC visibility pop
