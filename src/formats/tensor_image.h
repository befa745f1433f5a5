// SPDX-License-Identifier: Apache-2.0
// A tensor as a file holds it, without making it: some bytes in front, then its row-major form, streamed.
#pragma once

#include <memory>
#include <string>

#include "ballast/checkpoint.h"

namespace ballast {

/// A storage of `head` and the tensor's row-major bytes. read() keeps nothing in memory.
[[nodiscard]] std::shared_ptr<const Storage> tensor_image(const Tensor& tensor, std::string head = {});

}  // namespace ballast
