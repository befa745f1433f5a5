// SPDX-License-Identifier: Apache-2.0
// For targets that read whole files: any bytes are refused with an Error or opened; what is opened can be
// read to the last byte and, for a share of the inputs, written and read back the same.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/io.h"
#include "formats/open.h"
#include "limits.h"

namespace ballast::fuzzing {

inline constexpr std::uint64_t kMostBytes = 1U << 20U;  // reading more only costs time

inline std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(tensor.size_bytes(), kMostBytes)));
  tensor.read(0, bytes);
  return bytes;
}

inline std::vector<std::byte> bytes_of(const Entry& entry) {
  return bytes_of(entry.tensor());
}

/// Where copies are written, for a moment.
inline std::string copy_path(const std::string& extension) {
  return "/dev/shm/ballast-fuzz-" + std::to_string(getpid()) + extension;
}

/// Everything in it can be read, and is little enough to be copied.
inline bool is_readable(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const Entry& entry : checkpoint) {
    if ((total += entry.bytes) > kMostBytes) return false;
    if (entry.tensor().has_data()) static_cast<void>(bytes_of(entry));
  }
  return true;
}

inline bool is_same(const Entry& a, const Entry& b) {
  if (a.dtype != b.dtype || !std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end()))
    return false;
  const bool has_data = a.tensor().has_data();
  return has_data == b.tensor().has_data() && (!has_data || bytes_of(a) == bytes_of(b));
}

/// Writes and opens again; nullopt when the format cannot hold it.
inline std::optional<Checkpoint> copy_of(const Checkpoint& checkpoint, const std::string& path,
                                         SaveOptions options) {
  options.overwrite = true;
  try {
    save(checkpoint, path, options);
  } catch (const Error& error) {
    // Burn packs without names of their own, records whose names cannot be told apart, limits; names that
    // the format keeps for itself; damage, which is not passed on.
    const Errc code = error.code();
    if (code == Errc::not_representable || code == Errc::bad_json || code == Errc::bad_name ||
        code == Errc::bad_utf8 || code == Errc::bad_crc)
      return std::nullopt;
    complain("not written: " + std::string(error.what()));
  }
  try {
    return open(path);
  } catch (const Error& error) {
    complain("written, and not read: " + std::string(error.what()));
  }
}

inline void check_copy(const Checkpoint& checkpoint, const Checkpoint& copy) {
  if (copy.size() != checkpoint.size()) complain("a copy has another number of tensors");
  for (const Entry& entry : checkpoint) {
    const auto found = copy.position(entry.name);
    if (!found || !is_same(copy[*found], entry))
      complain("a copy holds something else as " + std::string(entry.name));
  }
}

inline void run(const std::uint8_t* data, std::size_t size, const std::string& extension) {
  try {
    const Checkpoint checkpoint = open_bytes(Storage::borrow(static_cast<const void*>(data), size));
    if (!is_readable(checkpoint)) return;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const bool is_ours = extension.substr(1).starts_with(checkpoint.format.name());
    if (!is_ours || std::hash<std::string_view>()(text) % 64 != 0) return;
    if (const auto copy = copy_of(checkpoint, copy_path(extension), {})) check_copy(checkpoint, *copy);
  } catch (const Error&) {
  }
}

}  // namespace ballast::fuzzing
