// SPDX-License-Identifier: Apache-2.0
// Digits from MNIST's files, and on the terminal.
#pragma once

#include <span>
#include <string>

#include "ballast/tensor.h"

/// U8, of the shape the file says. An IDX file: two zeros, 8 for unsigned bytes, the number of dimensions,
/// the dimensions as big-endian 32-bit numbers, the elements. Throws std::runtime_error for anything else.
[[nodiscard]] ballast::Tensor read_idx(const std::string& path);

/// Images [count, 28, 28] side by side, two pixels to a character, with a caption below each.
[[nodiscard]] std::string draw(const ballast::Tensor& images, std::span<const std::string> captions);
