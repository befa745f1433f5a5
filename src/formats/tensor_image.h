// SPDX-License-Identifier: Apache-2.0
// A tensor as a file holds it, without making it: some bytes in front, then its row-major form, streamed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ballast/checkpoint.h"

namespace ballast {

/// A storage of `head` and the tensor's row-major bytes. read() keeps nothing in memory.
[[nodiscard]] std::shared_ptr<const Storage> tensor_image(const Tensor& tensor, std::string head = {});

struct BytesInStorage {
  std::shared_ptr<const Storage> storage;
  std::uint64_t offset = 0;
};

/// The tensor's row-major bytes: in its own storage when they lie there so, otherwise an image of them. An
/// image takes some hundred bytes, which is more than a small tensor does.
[[nodiscard]] BytesInStorage row_major_bytes(const Tensor& tensor);

}  // namespace ballast
