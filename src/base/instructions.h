// SPDX-License-Identifier: Apache-2.0
// For loops that are written once and built for each kind of instructions: the attribute of the function a
// loop is inlined into decides. FMA is in none of them, so that the same numbers come out of all.
#pragma once

#define BALLAST_LOOP [[gnu::always_inline]] inline
#if defined(__x86_64__)
#define BALLAST_AVX2 [[gnu::target("avx2")]]
#define BALLAST_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]]
#else
#define BALLAST_AVX2
#define BALLAST_AVX512
#endif
