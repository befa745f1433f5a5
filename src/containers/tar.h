// SPDX-License-Identifier: Apache-2.0
// Tar archives, as far as torch 0.1 wrote them: regular files of a few names. Nothing is ever extracted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/source_storage.h"

namespace ballast::containers {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  // of its content in the source
  std::uint64_t size = 0;
};

/// All members. Errc::bad_tar for links, devices and headers that two readers would read differently;
/// Errc::truncated, Errc::path_escape, Errc::duplicate_entry.
[[nodiscard]] std::vector<TarMember> read_tar_members(const ByteSource& source);

}  // namespace ballast::containers
