// SPDX-License-Identifier: Apache-2.0
// The bytes of a file that is being written.
#pragma once

#include <string>

#include "ballast/byte_source.h"
#include "base/file.h"

namespace ballast {

class UnfinishedSource final : public ByteSource {
 public:
  UnfinishedSource(const std::string& path, std::uint64_t size, int descriptor)
      : ByteSource(path, size), descriptor_(descriptor) {}

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    read_descriptor(descriptor_, offset, out, *this);
  }

  int descriptor_;
};

}  // namespace ballast
