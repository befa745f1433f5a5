// SPDX-License-Identifier: Apache-2.0
// external_data may have a checksum: the SHA-1 of the whole file the data lies in.
#include <map>
#include <memory>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/file.h"
#include "formats/onnx/external.h"
#include "formats/onnx/model.h"
#include "formats/onnx/onnx.h"
#include "tensor/forwarding.h"

namespace ballast::onnx_file {

namespace {

class ProvenStorage final : public ForwardingStorage {
 public:
  ProvenStorage(std::shared_ptr<const Storage> bytes, std::shared_ptr<FileDigest> digest, std::string where,
                ExternalPlace place)
      : ForwardingStorage(bytes->size()),
        bytes_(std::move(bytes)),
        digest_(std::move(digest)),
        where_(std::move(where)),
        place_(std::move(place)) {}

  [[nodiscard]] bool holds_many() const noexcept override { return bytes_->holds_many(); }

  [[nodiscard]] bool ready() const noexcept override { return bytes_->ready(); }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    digest_->compare(where_, place_);
  }

 private:
  [[nodiscard]] const Storage& content() const override { return *bytes_; }

  std::shared_ptr<const Storage> bytes_;
  std::shared_ptr<FileDigest> digest_;
  std::string where_;
  ExternalPlace place_;
};

class Checker {
 public:
  explicit Checker(const ByteSource& source) : source_(source) {}

  void check(const TensorDescription& tensor) {
    if (tensor.data != DataIn::external || tensor.external.checksum.empty()) {
      sums_.without += tensor.bytes;
      return;
    }
    const std::string& location = tensor.external.location;
    auto known = digests_.find(location);
    if (known == digests_.end()) {
      const std::string path = locate(source_.name(), location);
      if (path.empty())
        fail(Errc::missing_storage, source_.where(), "{} with external data is not there", quoted(location));
      known = digests_.emplace(location, std::make_unique<FileDigest>(path)).first;
    }
    known->second->compare(source_.where() + ": tensor " + quoted(tensor.name), tensor.external);
    sums_.checked += tensor.bytes;
  }

  [[nodiscard]] Checksums sums() const { return sums_; }

 private:
  const ByteSource& source_;
  std::map<std::string, std::unique_ptr<FileDigest>> digests_;  // by location
  Checksums sums_;
};

}  // namespace

void FileDigest::compare(const std::string& where, const ExternalPlace& place) {
  const std::string& digest =
      digest_.get([this] { return sha1_of(*File::open(path_, {.follow_links = false})); });
  if (digest != lowered(place.checksum))
    fail(Errc::bad_crc, where, "the SHA-1 of {} is {}, the model says {}", quoted(place.location), digest,
         display(place.checksum));
}

std::shared_ptr<const Storage> proven(std::shared_ptr<const Storage> bytes,
                                      std::shared_ptr<FileDigest> digest, std::string where,
                                      ExternalPlace place) {
  return std::make_shared<ProvenStorage>(std::move(bytes), std::move(digest), std::move(where),
                                         std::move(place));
}

Checksums check_external(const ByteSource& source) {
  Checker checker(source);
  const TensorSink sink{.tensor = [&](const TensorDescription& tensor, Origin) { checker.check(tensor); },
                        .sparse =
                            [&](const SparseDescription& sparse, Origin) {
                              checker.check(sparse.values);
                              checker.check(sparse.indices);
                            }};
  static_cast<void>(read_model(source, sink));
  return checker.sums();
}

}  // namespace ballast::onnx_file
