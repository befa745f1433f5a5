// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include "base/fail.h"

namespace ballast {

void Budget::refuse_bytes(std::uint64_t bytes) const {
  fail(Errc::expansion_limit, where_,
       "{} bytes of metadata ask for {} bytes more than the {} MiB and {} times their size that a file may "
       "take "
       "(made to exhaust its reader?)",
       metadata_, bytes, kBytes >> 20U, kBytesPerByte);
}

void Budget::refuse_steps() const {
  fail(Errc::expansion_limit, where_,
       "{} bytes of metadata take more than {} steps to read (made to exhaust its reader?)", metadata_,
       kSteps + metadata_ * kStepsPerByte);
}

}  // namespace ballast
