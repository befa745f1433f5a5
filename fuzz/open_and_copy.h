// SPDX-License-Identifier: Apache-2.0
// For targets that read whole files: any bytes are refused with an Error or opened; what is opened can be
// read to the last byte and, for a share of the inputs, written in its own format and read back the same.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/io.h"
#include "formats/open.h"

namespace ballast::fuzzing {

inline constexpr std::uint64_t kMostBytes = 1U << 20U;  // reading more only costs time

[[noreturn]] inline void complain(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

inline std::vector<std::byte> bytes_of(const Entry& entry) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(entry.bytes, kMostBytes)));
  entry.tensor().read(0, bytes);
  return bytes;
}

inline void check_copy(const Checkpoint& checkpoint, const std::string& extension) {
  const std::string path = "/dev/shm/ballast-fuzz-" + std::to_string(getpid()) + extension;
  try {
    save(checkpoint, path, {.overwrite = true});
  } catch (const Error& error) {
    // Burn packs without names of their own, records whose names cannot be told apart, limits.
    if (error.code() == Errc::not_representable || error.code() == Errc::bad_json) return;
    complain(error.what());
  }
  const Checkpoint copy = open(path);
  if (copy.size() != checkpoint.size()) complain("a copy has another number of tensors");
  for (const Entry& entry : checkpoint) {
    const auto found = copy.position(entry.name);
    if (!found || copy[*found].dtype != entry.dtype || bytes_of(copy[*found]) != bytes_of(entry))
      complain("a copy holds something else");
  }
}

inline void run(const std::uint8_t* data, std::size_t size, const std::string& extension) {
  try {
    const Checkpoint checkpoint = open_bytes(Storage::borrow(static_cast<const void*>(data), size));
    std::uint64_t total = 0;
    for (const Entry& entry : checkpoint) {
      if ((total += entry.bytes) > kMostBytes) return;
      static_cast<void>(bytes_of(entry));
    }
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const bool is_ours = extension.substr(1).starts_with(checkpoint.format);
    if (is_ours && std::hash<std::string_view>()(text) % 64 == 0) check_copy(checkpoint, extension);
  } catch (const Error&) {
  }
}

}  // namespace ballast::fuzzing
