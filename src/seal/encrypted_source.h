// SPDX-License-Identifier: Apache-2.0
// What an encrypted source holds, as a source: decrypted where it is read, and nowhere else.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ballast/byte_source.h"

namespace ballast::seal {

class EncryptedSource : public ByteSource {
 public:
  [[nodiscard]] std::string identity() const override {
    const std::string file = sealed_->identity();
    return file.empty() ? file : file + " decrypted";
  }

  void check_unchanged() const override { sealed_->check_unchanged(); }

  /// The file itself.
  [[nodiscard]] const ByteSource& sealed() const noexcept { return *sealed_; }

 protected:
  EncryptedSource(std::string name, std::uint64_t size, std::shared_ptr<const ByteSource> sealed)
      : ByteSource(std::move(name), size, sealed->where()), sealed_(std::move(sealed)) {}

 private:
  std::shared_ptr<const ByteSource> sealed_;
};

/// Where the bytes come from in the end.
[[nodiscard]] inline const ByteSource& outermost(const ByteSource& source) {
  const auto* encrypted = dynamic_cast<const EncryptedSource*>(&source);
  return encrypted == nullptr ? source : outermost(encrypted->sealed());
}

}  // namespace ballast::seal
