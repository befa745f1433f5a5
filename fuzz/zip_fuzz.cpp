// SPDX-License-Identifier: Apache-2.0
// Any bytes as a zip archive: opened, every entry checked and read. Refusing is fine; anything but
// ballast::Error is not.
#include <cstddef>
#include <cstdint>

#include "ballast/error.h"
#include "containers/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ballast;
  constexpr std::uint64_t kMost = 1U << 20U;  // inflating more than this only costs time
  try {
    const containers::ZipArchive archive = containers::ZipArchive::open(
        memory_source(Storage::borrow(static_cast<const void*>(data), size), "fuzz"));
    for (const containers::ZipEntry& entry : archive.entries()) {
      if (archive.find(entry.name) != &entry) __builtin_trap();
      try {
        if (entry.size <= kMost)
          archive.check_crc(entry);
        else
          static_cast<void>(archive.check_header(entry));
      } catch (const Error&) {  // the next entry may be sound
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
