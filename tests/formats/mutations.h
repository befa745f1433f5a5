// SPDX-License-Identifier: Apache-2.0
// For tests of readers: every cut and every changed byte of a small file ends in an Error or in tensors whose
// bytes can be read, and in nothing else.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "formats/open.h"
#include "formats/safetensors_testing.h"

namespace ballast {

/// The code open_bytes() and reading everything end in; "ok" when they do not.
inline std::string verdict_of(std::string_view file) {
  try {
    const Checkpoint checkpoint = open_bytes(safetensors::in_memory(file));
    for (const Entry& entry : checkpoint) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(entry.bytes, 1U << 20U)));
      entry.tensor().read(0, bytes);
    }
    return "ok";
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
}

/// Calls `see` with the verdict on each prefix of `file`.
inline void for_each_cut(std::string_view file,
                         const std::function<void(std::size_t, const std::string&)>& see) {
  for (std::size_t size = 0; size < file.size(); ++size) see(size, verdict_of(file.substr(0, size)));
}

/// Every byte replaced by every one of a few values that matter to parsers; the number of files tried.
inline std::size_t try_changed_bytes(std::string_view file) {
  std::size_t tried = 0;
  for (std::size_t at = 0; at < file.size(); ++at) {
    const auto old = static_cast<unsigned char>(file[at]);
    for (const unsigned value : {0U, 1U, 0x7FU, 0x80U, 0xFFU, old ^ 1U, old ^ 0x80U, old + 1U}) {
      std::string changed(file);
      changed[at] = static_cast<char>(value);
      static_cast<void>(verdict_of(changed));
      ++tried;
    }
  }
  return tried;
}

}  // namespace ballast
