// SPDX-License-Identifier: Apache-2.0
#define BALLAST_ISA isa_avx512
#include "ops/kernels_body.inc"
