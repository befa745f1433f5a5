// SPDX-License-Identifier: Apache-2.0
// Data of a model's tensors in files beside it. A location is a relative path that stays in the model's
// folder; tensors may share the same bytes, and may not lie on parts of each other's.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/lazy.h"
#include "formats/onnx/tensor.h"

namespace ballast::onnx_file {

/// Where a location leads, from a model at `model`; empty when there is no such file. Errc::path_escape.
[[nodiscard]] std::string locate(const std::string& model, const std::string& location);

/// The checksum external_data may have: the SHA-1 of the whole file, computed when it is first asked for;
/// from any thread.
class FileDigest {
 public:
  explicit FileDigest(std::string path) : path_(std::move(path)) {}

  /// Errc::bad_crc when the tensor says another.
  void compare(const std::string& where, const ExternalPlace& place);

 private:
  std::string path_;
  Lazy<std::string> digest_;
};

/// `bytes`, whose check_sound() compares the checksum that `place` has.
[[nodiscard]] std::shared_ptr<const Storage> proven(std::shared_ptr<const Storage> bytes,
                                                    std::shared_ptr<FileDigest> digest, std::string where,
                                                    ExternalPlace place);

class ExternalFiles {
 public:
  /// For the model in `source`; tensors elsewhere are Errc::unsupported when it is not a file.
  explicit ExternalFiles(const ByteSource& source) : source_(source) {}

  /// The bytes of an external tensor. Errc::path_escape, missing_storage, size_mismatch, offset_out_of_range,
  /// too_many.
  [[nodiscard]] std::shared_ptr<const Storage> storage(const TensorDescription& tensor);
  /// When all tensors were asked for: Errc::overlap, and Errc::expanded_view where many have the same bytes.
  void check_overlaps(double expansion);

 private:
  struct Span {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t item;  // bytes an element has: what decides about alignment
    // NOLINTNEXTLINE(modernize-use-nullptr): version 14 takes the zero behind <=> for a pointer
    friend auto operator<=>(const Span&, const Span&) = default;
  };

  struct Opened {
    std::shared_ptr<const File> file;
    std::shared_ptr<FileDigest> digest;
    std::map<Span, std::pair<std::shared_ptr<const Storage>, std::string>>
        spans;  // bytes, first name on them
  };

  Opened& open(const TensorDescription& tensor);

  const ByteSource& source_;
  std::map<std::string, Opened> files_;  // by location
  std::uint64_t shown_ = 0;              // bytes of all tensors
};

}  // namespace ballast::onnx_file
