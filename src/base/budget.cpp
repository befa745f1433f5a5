// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace ballast {
namespace {

thread_local std::size_t files_of_set = 1;

}  // namespace

SharedBudget::SharedBudget(std::size_t files) noexcept
    : before_(std::exchange(files_of_set, std::max<std::size_t>(files, 1))) {}

SharedBudget::~SharedBudget() {
  files_of_set = before_;
}

std::uint64_t SharedBudget::part_of(std::uint64_t whole) noexcept {
  constexpr std::uint64_t kLeast =
      1024;  // parts: the files of a larger set have as much as those of one of these
  return whole / std::min<std::uint64_t>(files_of_set, kLeast);
}

void Budget::refuse_bytes(std::uint64_t bytes) const {
  fail(Errc::expansion_limit, where_,
       "{} bytes of metadata ask for {} bytes more than the {} MiB{} and {} times their size that a file may "
       "take "
       "(made to exhaust its reader?)",
       metadata_, bytes, kBytes >> 20U, files_of_set > 1 ? " for all files of its set" : "", kBytesPerByte);
}

void Budget::refuse_steps() const {
  fail(Errc::expansion_limit, where_,
       "{} bytes of metadata take more than {} steps to read (made to exhaust its reader?)", metadata_,
       SharedBudget::part_of(kSteps) + metadata_ * kStepsPerByte);
}

}  // namespace ballast
