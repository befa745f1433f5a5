// SPDX-License-Identifier: Apache-2.0
// Any bytes as an .npz archive, or as an .npy array when they begin so.
#include "open_and_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ballast::fuzzing::run(data, size, ".npz");
  return 0;
}
