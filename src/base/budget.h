// SPDX-License-Identifier: Apache-2.0
// What opening one file may cost. One budget is made where a file is opened and handed down to everything
// that works for it: streams inside streams, names, deferred results. Nothing raises it but bytes of the
// input that have to be read anyway, so that memory and time stay in proportion to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// As long as it lives, what its thread opens are files of one set: what any file may take, whatever its
/// size, is divided among so many. One small file may ask for all of it, and so not each of ten thousand.
class SharedBudget {
 public:
  explicit SharedBudget(std::size_t files) noexcept;
  SharedBudget(const SharedBudget&) = delete;
  SharedBudget& operator=(const SharedBudget&) = delete;
  ~SharedBudget();

  /// The part of `whole` for one file of this thread's set; all of it where there is none.
  [[nodiscard]] static std::uint64_t part_of(std::uint64_t whole) noexcept;

 private:
  std::size_t before_;
};

class Budget {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;  ///< for any file
  static constexpr std::uint64_t kBytesPerByte = 8;                  ///< and for each byte of its metadata
  static constexpr std::uint64_t kSteps = std::uint64_t{16} << 20U;
  static constexpr std::uint64_t kStepsPerByte = 16;

  /// `where` names the file in refusals.
  explicit Budget(std::string where) : where_(std::move(where)) {}

  /// So many bytes of the input are metadata (a pickle, a directory), each counted once.
  void admit(std::uint64_t metadata_bytes) noexcept {
    metadata_ += metadata_bytes;
    bytes_ += metadata_bytes * kBytesPerByte;
    steps_ += metadata_bytes * kStepsPerByte;
  }

  /// Memory that is about to be taken; Errc::expansion_limit when there is none left.
  void take(std::uint64_t bytes) {
    if (bytes > bytes_) refuse_bytes(bytes);
    bytes_ -= bytes;
  }

  /// Memory that is free again.
  void give_back(std::uint64_t bytes) noexcept { bytes_ += bytes; }

  /// Work beyond a look at each byte of the input. What is done with a whole text, which many may name, costs
  /// steps_for_text().
  void step(std::uint64_t steps = 1) {
    if (steps > steps_) refuse_steps();
    steps_ -= steps;
  }

 private:
  [[noreturn]] void refuse_bytes(std::uint64_t bytes) const;
  [[noreturn]] void refuse_steps() const;

  std::string where_;
  std::uint64_t metadata_ = 0;
  std::uint64_t bytes_ = SharedBudget::part_of(kBytes);
  std::uint64_t steps_ = SharedBudget::part_of(kSteps);
};

/// To hash, compare or copy a text.
[[nodiscard]] constexpr std::uint64_t steps_for_text(std::uint64_t bytes) noexcept {
  return bytes / 16 + 1;
}

}  // namespace ballast

#pragma GCC visibility pop
