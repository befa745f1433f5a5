// SPDX-License-Identifier: Apache-2.0
// What a persistent id says of a storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ballast/dtype.h"
#include "checkpoint/value_tree.h"

namespace ballast::torch {

/// What a persistent id ('storage', class, key, location, count, view) says.
struct StorageId {
  std::optional<DType> dtype;
  TypeId type = 0;
  std::string key;
  TypeId location = 0;
  std::uint64_t numel = 0;
  std::uint64_t bytes = 0;
  Ref view;  // old files: (key, offset, count), or None
};

}  // namespace ballast::torch
