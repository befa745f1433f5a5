// SPDX-License-Identifier: Apache-2.0
// external_data may have a checksum: the SHA-1 of the whole file the data lies in.
#include <openssl/evp.h>

#include <map>
#include <memory>

#include "ballast/display.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/sizes.h"
#include "formats/onnx/external.h"
#include "formats/onnx/model.h"
#include "formats/onnx/onnx.h"

namespace ballast::onnx_file {

std::string sha1_of(const ByteSource& file) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  bool works = context && EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) == 1;
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < file.size() && works; at += piece.size()) {
    piece = file.read(at, std::min<std::uint64_t>(kBlockBytes, file.size() - at));
    works = EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!works || EVP_DigestFinal_ex(context.get(), digest, &size) != 1)
    fail(Errc::unsupported, "SHA-1", "OpenSSL refuses to compute it");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

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
      known = digests_.emplace(location, sha1_of(*File::open(path, {.follow_links = false}))).first;
    }
    if (known->second != lower(tensor.external.checksum)) {
      fail(Errc::bad_crc, source_.where(), "tensor {}: the SHA-1 of {} is {}, the model says {}",
           quoted(tensor.name), quoted(location), known->second, display(tensor.external.checksum));
    }
    sums_.checked += tensor.bytes;
  }

  [[nodiscard]] Checksums sums() const { return sums_; }

 private:
  const ByteSource& source_;
  std::map<std::string, std::string> digests_;  // by location
  Checksums sums_;
};

}  // namespace

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
