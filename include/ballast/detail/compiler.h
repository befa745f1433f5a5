// SPDX-License-Identifier: Apache-2.0
// What the compiler must be told. Included by every header that includes no other of Ballast's, so that one
// sentence is all it says; the include that is not there ends it.
#pragma once

#if __cplusplus <= 201703L
#error \
    "ballast: this is C++20: compile with -std=c++20 or later (CMake: target_compile_features(app PRIVATE cxx_std_20))"
#include "ballast needs -std=c++20"
#endif
