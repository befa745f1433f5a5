// SPDX-License-Identifier: Apache-2.0
#define BALLAST_ISA isa_plain
#include "ops/kernels_body.inc"
