// SPDX-License-Identifier: Apache-2.0
#include "proof/sha256.h"

#include <openssl/evp.h>

#include "base/fail.h"

namespace ballast {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() { EVP_MD_CTX_free(context); }
};

namespace {

void require(bool worked) {
  if (!worked) fail(Errc::unsupported, "SHA-256", "OpenSSL refuses to compute it");
}

}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Sha256::Digest Sha256::finish() {
  Digest digest{};
  require(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  return digest;
}

std::string hex(const Sha256::Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace ballast
