// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <openssl/evp.h>

#include "base/blocks.h"
#include "base/fail.h"

namespace ballast {
namespace {

class Evp {
 public:
  Evp(const EVP_MD* kind, const char* name) : name_(name) {
    require(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
  }

  void update(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  void finish(std::span<std::byte> digest) {
    require(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) ==
            1);
  }

 private:
  void require(bool worked) const {
    if (!worked) fail(Errc::unsupported, name_, "OpenSSL refuses to compute it");
  }

  const char* name_;
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

template <std::size_t Size>
std::string digest_of(Evp hash, const ByteSource& source, const Progress& progress) {
  for_each_block(source, 0, source.size(), [&](std::uint64_t at, std::span<const std::byte> block) {
    hash.update(block);
    if (progress) progress(at + block.size(), source.size());
  });
  source.check_unchanged();
  std::array<std::byte, Size> digest{};
  hash.finish(digest);
  return hex(digest);
}

}  // namespace

struct Sha256::State {
  Evp evp{EVP_sha256(), "SHA-256"};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  state_->evp.update(bytes);
}

Sha256::Digest Sha256::finish() {
  Digest digest{};
  state_->evp.finish(digest);
  return digest;
}

std::string hex(std::span<const std::byte> digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::string sha256_of(const ByteSource& source, const Progress& progress) {
  return digest_of<32>({EVP_sha256(), "SHA-256"}, source, progress);
}

std::string sha1_of(const ByteSource& source) {
  return digest_of<20>({EVP_sha1(), "SHA-1"}, source, {});
}

}  // namespace ballast
