// SPDX-License-Identifier: Apache-2.0
// What a reader found in a file, to be compared with what another found.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ballast/checkpoint.h"
#include "ballast/error.h"

namespace ballast {

/// Everything, as text; or the code of its refusal.
inline std::string found_in(const std::function<Checkpoint()>& open_it) {
  try {
    const Checkpoint checkpoint = open_it();
    std::string all = std::string(checkpoint.format.name()) + '\n';
    for (const Entry& entry : checkpoint) {
      std::string bytes(static_cast<std::size_t>(entry.bytes), '\0');
      if (entry.tensor().has_data()) entry.tensor().read(0, std::as_writable_bytes(std::span(bytes)));
      all += std::string(entry.name) + ' ' + std::string(info(entry.dtype).code) + ' ' +
             to_string(entry.shape) + ' ' + bytes + '\n';
    }
    return all;
  } catch (const Error& error) {
    return "refused: " + std::string(name(error.code()));
  }
}

}  // namespace ballast
