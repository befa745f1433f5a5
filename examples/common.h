// SPDX-License-Identifier: Apache-2.0
// What the examples share: saying how near a result is to PyTorch's.
#pragma once

#include <iostream>
#include <string_view>

#include "ballast/ops.h"

namespace examples {

inline constexpr double kMostError = 1e-4;

/// Prints |ours - theirs| / |theirs| and whether the largest elements along `dim` are in the same places.
/// False when the error is above 1e-4, or a place differs.
inline bool agrees(const ballast::Tensor& ours, const ballast::Tensor& theirs, std::int64_t dim = -1) {
  if (ours.shape() != theirs.shape()) {
    std::cout << "PyTorch's output is " << theirs.shape() << ", ours " << ours.shape() << '\n';
    return false;
  }
  const double error = ballast::norm(ours - theirs).item() / ballast::norm(theirs).item();
  const ballast::Tensor same = ballast::eq(ballast::argmax(ours, dim), ballast::argmax(theirs, dim));
  std::cout << "PyTorch's output and ours, " << ours.shape() << ": relative error " << error
            << ", argmax equal in " << ballast::sum(same).item() << " of " << same.numel() << '\n';
  return error <= kMostError && ballast::all(same).item() != 0;
}

/// The numbers of a tensor of integers in one line.
inline void print_numbers(std::string_view what, const ballast::Tensor& numbers) {
  std::cout << what;
  for (const std::int64_t number : numbers.contiguous().span<std::int64_t>()) std::cout << ' ' << number;
  std::cout << '\n';
}

}  // namespace examples
