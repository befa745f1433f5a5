// SPDX-License-Identifier: Apache-2.0
#include "formats/encrypted.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <optional>

#include "base/fail.h"
#include "formats/crypto_tensors.h"
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

std::shared_ptr<const ByteSource> decrypted(std::shared_ptr<const ByteSource> source,
                                            const OpenOptions& options) {
  const seal::GivenKeys given = keys_of(options);
  return without_crypto_tensors(seal::unsealed(std::move(source), given), given);
}

OpenedFile open_content(const std::string& path, const FileOptions& how, const OpenOptions& options) {
  OpenedFile opened{.file = File::open(path, how), .content = {}};
  opened.content = opened.file;
  if (!seal::is_sealed(*opened.file) && !may_be_crypto_tensors(*opened.file)) return opened;
  // What is mapped is the file; its bytes mean nothing before they are decrypted somewhere else.
  if (opened.file->io() == Io::map) {
    FileOptions reading = how;
    reading.io = Io::read;
    reading.sharing = Sharing::read_only;
    opened.file = File::open(path, reading);
  }
  opened.content = decrypted(opened.file, options);
  return opened;
}

bool can_open(const std::vector<std::string>& recipients) {
  const std::vector<std::string> ours = seal::recipients_of(keys_of_process());
  return std::any_of(ours.begin(), ours.end(), [&](const std::string& one) {
    return std::find(recipients.begin(), recipients.end(), one) != recipients.end();
  });
}

void require_encryption_said(const std::string& path, bool encrypts) {
  const bool is_named = path.ends_with(".age");
  if (is_named && !encrypts)
    fail(Errc::invalid_argument, display(path),
         "for whom is it to be encrypted? Say it (--recipient age1…, recipients), or a passphrase "
         "(--passphrase-file)");
  if (!is_named && encrypts)
    fail(Errc::invalid_argument, display(path), "the name of an encrypted file ends in .age: {}",
         quoted(path + ".age"));
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
