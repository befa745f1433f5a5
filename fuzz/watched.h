// SPDX-License-Identifier: Apache-2.0
// For targets that are measured (Limits): the heap is counted and the stack made small before the first
// input.
#pragma once

#include "limits.h"

// libFuzzer calls it once; a target is one source, so it is defined here.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  ballast::fuzzing::watch_memory();
  return 0;
}
