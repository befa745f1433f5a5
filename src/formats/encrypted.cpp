// SPDX-License-Identifier: Apache-2.0
#include "formats/encrypted.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <optional>

#include "base/fail.h"
#include "seal/age_source.h"

namespace ballast {
namespace {

constinit std::mutex default_keys_mutex;
constinit std::optional<seal::GivenKeys> default_keys;

seal::GivenKeys keys_of_process() {
  const std::lock_guard lock(default_keys_mutex);
  if (default_keys) return *default_keys;
  const char* path = std::getenv("BALLAST_IDENTITY");  // NOLINT(concurrency-mt-unsafe): nobody here sets any
  if (path == nullptr || *path == '\0') return {};
  return {.identities = {path}, .passphrase_file = {}};
}

}  // namespace

void set_identities(std::vector<std::string> identities, std::string passphrase_file) {
  const std::lock_guard lock(default_keys_mutex);
  default_keys = {std::move(identities), std::move(passphrase_file)};
}

seal::GivenKeys keys_of(const OpenOptions& options) {
  seal::GivenKeys own{.identities = options.identities, .passphrase_file = options.passphrase_file};
  return own.empty() ? keys_of_process() : own;
}

OpenedFile open_content(const std::string& path, const FileOptions& how, const OpenOptions& options) {
  OpenedFile opened{.file = File::open(path, how), .content = {}};
  opened.content = opened.file;
  if (!seal::is_sealed(*opened.file)) return opened;
  // What is mapped is the file; its bytes mean nothing before they are decrypted somewhere else.
  if (opened.file->io() == Io::map) {
    FileOptions reading = how;
    reading.io = Io::read;
    reading.sharing = Sharing::read_only;
    opened.file = File::open(path, reading);
  }
  opened.content = seal::AgeSource::open(opened.file, keys_of(options));
  return opened;
}

NewIdentity generate_identity() {
  seal::Key secret;
  seal::fill_random(secret.bytes());
  const std::string recipient = seal::recipient_text(seal::x25519_public(secret));
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {.file = fmt::format("# created: {}\n# public key: {}\n{}\n", date.data(), recipient,
                              seal::identity_text(secret)),
          .recipient = recipient};
}

}  // namespace ballast
