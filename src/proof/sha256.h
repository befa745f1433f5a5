// SPDX-License-Identifier: Apache-2.0
// SHA-256, by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ballast {

class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;

  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void update(std::span<const std::byte> bytes);
  /// Once.
  [[nodiscard]] Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string hex(const Sha256::Digest& digest);

}  // namespace ballast
