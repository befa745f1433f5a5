// SPDX-License-Identifier: Apache-2.0
// Memory that a mapped file takes while somebody reads it.
#pragma once

#include "ballast/tensor.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// The pages of a mapped file that hold nothing but this tensor leave the process's memory: it was read, and
/// what was made of it is used from now on. The file's bytes stay with the system, and come back when
/// somebody reads them; addresses stay good. Nothing happens to bytes that lie elsewhere.
void give_back_pages(const Tensor& tensor) noexcept;

}  // namespace ballast

#pragma GCC visibility pop
