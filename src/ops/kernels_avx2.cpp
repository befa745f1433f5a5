// SPDX-License-Identifier: Apache-2.0
#define BALLAST_ISA isa_avx2
#include "ops/kernels_body.inc"
