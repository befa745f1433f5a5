// SPDX-License-Identifier: Apache-2.0
// XXH3, 64 bits: sees damage, at the speed of memory. No protection against somebody who means harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

class Xxh3 {
 public:
  Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  ~Xxh3();

  void update(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] std::uint64_t digest() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Sixteen hexadecimal digits, most significant first, as xxhsum prints them.
[[nodiscard]] std::string hex(std::uint64_t digest);

}  // namespace ballast

#pragma GCC visibility pop
