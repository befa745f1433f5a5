// SPDX-License-Identifier: Apache-2.0
// SHA-256 and SHA-1, by OpenSSL. Compiled into a library of its own, which the importer and the exporter of
// ONNX link: core needs no OpenSSL, and neither of the two needs the other for a checksum.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "ballast/byte_source.h"
#include "ballast/runtime.h"

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

/// In hexadecimal.
[[nodiscard]] std::string hex(std::span<const std::byte> digest);

/// Of all bytes, in hexadecimal. Errc::file_changed when they are not what they were when it was opened.
[[nodiscard]] std::string sha256_of(const ByteSource& source, const Progress& progress = {});
[[nodiscard]] std::string sha1_of(const ByteSource& source);

}  // namespace ballast
