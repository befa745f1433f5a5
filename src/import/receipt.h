// SPDX-License-Identifier: Apache-2.0
// What all that writes receipts shares.
#pragma once

#include <string>
#include <vector>

#include "ballast/convert.h"

namespace ballast {

/// Without folders.
[[nodiscard]] std::string base_name(const std::string& path);

/// The file that was opened and those its tensors lie in, by their bytes.
[[nodiscard]] std::vector<Receipt::File> hashed_files(const Checkpoint& checkpoint,
                                                      const Progress& progress = {});

/// What would keep a receipt from being written is said before the work. Nothing where `path` is empty.
void require_receipt(const std::string& path, bool overwrite, const std::vector<std::string>& recipients);

}  // namespace ballast
