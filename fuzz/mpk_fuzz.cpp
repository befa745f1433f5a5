// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Burn record, plain or (when they begin so) gzipped.
#include "open_and_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ballast::fuzzing::run(data, size, ".mpk");
  return 0;
}
