// SPDX-License-Identifier: Apache-2.0
// What a file of another format says in its metadata becomes the structure of Burn's: names, numbers, layers.
// It may be longer or deeper than a reader takes, and must not lock the tensors in.
#pragma once

#include <string>

#include "ballast/checkpoint.h"
#include "ballast/error.h"
#include "base/fail.h"

namespace ballast::burn {

/// `read` opens what was written.
template <class Read>
void require_read_again(const std::string& where, const Read& read) {
  try {
    const Checkpoint again = read();
  } catch (const Error& error) {
    fail(Errc::not_representable, where, "it would not be read again: {}", error.what());
  }
}

}  // namespace ballast::burn
