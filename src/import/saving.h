// SPDX-License-Identifier: Apache-2.0
// How an output is written, as the options of every function that writes one say it.
#pragma once

#include "ballast/io.h"

namespace ballast {

/// Of options that have these fields of SaveOptions.
template <class Options>
[[nodiscard]] SaveOptions saving_of(const Options& options) {
  return {.check = options.check,
          .pack = options.pack,
          .recipients = options.recipients,
          .passphrase_file = options.passphrase_file,
          .overwrite = options.overwrite,
          .progress = options.progress};
}

}  // namespace ballast
