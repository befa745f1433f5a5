// SPDX-License-Identifier: Apache-2.0
// The two containers a pickle and its storages are written into.
#pragma once

#include <string>
#include <vector>

#include "ballast/runtime.h"
#include "base/atomic_file.h"
#include "formats/torch/storage_table.h"

namespace ballast::torch {

void write_zip(AtomicFile& file, std::string pickle, const std::vector<StorageRecord>& storages,
               const Progress& progress);
void write_legacy(AtomicFile& file, const std::string& pickle, const std::vector<StorageRecord>& storages,
                  const Progress& progress);

}  // namespace ballast::torch
