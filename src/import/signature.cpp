// SPDX-License-Identifier: Apache-2.0
// Signatures of OpenSSF Model Signing: what is signed, what of it is there, and who did it.
#include <algorithm>
#include <filesystem>

#include "ballast/error.h"
#include "ballast/verify.h"
#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/enum_names.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/utf8.h"
#include "seal/bundle.h"
#include "seal/model_files.h"
#include "seal/secret_text.h"
#include "seal/signing.h"
#include "seal/statement.h"

namespace ballast {
namespace {

using seal::Bundle;
using seal::ModelFile;
using seal::ModelFiles;
using seal::SignedFile;
using seal::Statement;

constexpr std::size_t kMaxPem = std::size_t{4} << 20U;

std::string bounded_text(const std::string& path, std::size_t most, std::string_view what) {
  seal::require_path(path, what);
  const auto file = File::open(path, {.io = Io::read});
  if (file->size() > most)
    fail(Errc::header_too_large, display(path), "{} bytes are too many for {}, which has {} at most",
         file->size(), what, most);
  return std::string(as_text(file->read(0, file->size())));
}

std::vector<seal::Der> certificates_of(const std::vector<std::string>& paths) {
  std::vector<seal::Der> all;
  for (const std::string& path : paths) {
    const auto some = seal::certificates_in(bounded_text(path, kMaxPem, "certificates"), display(path));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// As they stand in the statement: the signature itself first.
std::vector<std::string> ignored_paths(const std::string& path, const std::string& signature,
                                       const SignatureOptions& options, std::vector<std::string>& notes) {
  std::vector<std::string> ignored;
  if (std::string place = seal::place_in_model(path, signature); !place.empty())
    ignored.push_back(std::move(place));
  for (const std::string& one : options.ignore) {
    std::string place = seal::place_in_model(path, one);
    if (place.empty())
      notes.push_back(
          fmt::format("{} is not in {}, and nothing is ignored for it", display(one), display(path)));
    else
      ignored.push_back(std::move(place));
  }
  if (options.ignore_git) {
    for (const char* name : {".git", ".gitattributes", ".github", ".gitignore"}) ignored.emplace_back(name);
  }
  return ignored;
}

void note_links(const ModelFiles& found, std::vector<std::string>& notes) {
  for (const std::string& name : found.linked_folders)
    notes.push_back(
        fmt::format("{} is a link to a folder: what is in it is not part of the model", display(name)));
}

std::uint64_t bytes_in_all(const std::vector<ModelFile>& files) {
  std::uint64_t bytes = 0;
  for (const ModelFile& file : files) bytes += file.size;
  return bytes;
}

// One that came, went or changed while the others were read has been missed.
void require_same(const ModelFiles& before, const ModelFiles& after, const std::string& path) {
  if (before != after)
    fail(Errc::file_changed, display(path),
         "its files changed while they were read: nothing is said about them");
}

seal::SigningKey key_to_sign_with(const SignatureOptions& options) {
  if (options.key.empty()) fail(Errc::invalid_argument, "", "a private key is needed to sign (key)");
  const seal::SecretText pem = seal::read_secret(options.key, "a key");
  if (options.passphrase_file.empty())
    return seal::SigningKey::from_private_pem(pem.text(), {}, display(options.key));
  const seal::SecretText file = seal::read_secret(options.passphrase_file, "a passphrase");
  const auto passphrase = seal::passphrase_in(file, options.passphrase_file);
  return seal::SigningKey::from_private_pem(pem.text(), as_text(passphrase), display(options.key));
}

bool fits_as_of_0_2(const Bundle& bundle, const seal::SigningKey& key) {
  const std::string text = seal::encoded_as_0_2(bundle.payload);
  return key.verify(text, bundle.signature, seal::SignedBy::curve) ||
         key.verify(text, bundle.signature, seal::SignedBy::sha256);
}

// Who signed is known before anything is believed.
std::string check_signer(const Bundle& bundle, const SignatureOptions& options, const std::string& where) {
  const bool has_certificates = !bundle.certificates.empty();
  if (options.key.empty() == options.certificate_chain.empty())
    fail(Errc::invalid_argument, where,
         "a signature is checked with a public key or with certificates that are trusted: give one of them{}",
         has_certificates ? " (it was made with a certificate)" : " (it was made with a key)");
  if (has_certificates != options.key.empty())
    fail(Errc::wrong_signature, where, "{}",
         has_certificates
             ? "was signed with a certificate: give those that are trusted (certificate_chain), not a key"
             : "was signed with a key: give the public key, not certificates");
  seal::Signer signer =
      has_certificates
          ? seal::trusted_signer(bundle.certificates, certificates_of(options.certificate_chain), where)
          : seal::Signer{seal::SigningKey::from_public_pem(bounded_text(options.key, kMaxPem, "a key"),
                                                           display(options.key)),
                         {}};
  if (!has_certificates) {
    const std::string hint = signer.key.hint();
    if (!bundle.hint.empty() && bundle.hint != hint)
      fail(Errc::wrong_signature, where, "was signed with another key: with {}, {} is {}",
           quoted(bundle.hint), display(options.key), hint);
    signer.name = "key " + hint;
  }
  if (!signer.key.verify(seal::encoded(bundle.payload), bundle.signature, seal::SignedBy::curve) &&
      !fits_as_of_0_2(bundle, signer.key))
    fail(Errc::wrong_signature, where, "its signature was not made with this key for what it states ({})",
         has_certificates ? "was it changed?" : "another key, or was it changed?");
  return signer.name;
}

// The specification calls a single file by its name, the tool ".".
void rename_single_file(Statement& statement, const std::string& path) {
  std::error_code ignored;
  if (statement.files.size() == 1 && std::filesystem::is_regular_file(path, ignored) &&
      statement.files.front().name == seal::model_name(path))
    statement.files.front().name = ".";
}

// Before any work, and nothing but another signature is ever lost: no key, no file of the model.
void require_replaceable(const std::string& signature, bool overwrite) {
  std::error_code ignored;
  if (!std::filesystem::exists(signature, ignored)) return;
  if (!overwrite) fail(Errc::already_exists, display(signature), "is there already");
  try {
    static_cast<void>(seal::read_bundle(bounded_text(signature, seal::kMaxBundle, "a signature"), ""));
  } catch (const Error& error) {
    if (error.code() == Errc::unsupported) return;  // another kind of signature
    fail(Errc::invalid_argument, display(signature), "is there and no signature: it is not overwritten");
  }
}

void require_text(const std::string& text, const std::string& path) {
  if (!is_utf8(text))
    fail(Errc::bad_name, display(path), "{} is not UTF-8, and cannot be signed", quoted(text));
}

// Those that are in both, to be read; the others are findings already.
std::vector<std::pair<const SignedFile*, const ModelFile*>> matched(const Statement& statement,
                                                                    const ModelFiles& found,
                                                                    std::vector<SignatureFinding>& findings) {
  std::vector<std::pair<const SignedFile*, const ModelFile*>> both;
  auto expected = statement.files.begin();
  auto there = found.files.begin();
  while (expected != statement.files.end() || there != found.files.end()) {
    if (there == found.files.end() ||
        (expected != statement.files.end() && seal::before_path(expected->name, there->name))) {
      findings.push_back({SignatureFault::missing, expected++->name});
    } else if (expected == statement.files.end() || expected->name != there->name) {
      findings.push_back({SignatureFault::added, there++->name});
    } else {
      both.emplace_back(&*expected++, &*there++);
    }
  }
  return both;
}

}  // namespace

std::string_view name(SignatureFault fault) noexcept {
  static constexpr std::string_view kNames[] = {"changed", "missing", "added"};
  return name_in<SignatureFault::added>(kNames, fault);
}

SignatureReport sign(const std::string& path, const std::string& signature, const SignatureOptions& options) {
  require_replaceable(signature, options.overwrite);
  const seal::SigningKey key = key_to_sign_with(options);
  SignatureReport report;
  Bundle bundle;
  if (options.certificate.empty()) {
    if (!options.certificate_chain.empty())
      fail(Errc::invalid_argument, "", "a chain of certificates needs the key's own (certificate)");
    bundle.hint = key.hint();
    report.signer = "key " + bundle.hint;
  } else {
    bundle.certificates = {certificates_of({options.certificate}).front()};
    report.signer = seal::name_for_key(bundle.certificates.front(), key, display(options.certificate));
    for (seal::Der& one : certificates_of(options.certificate_chain))
      bundle.certificates.push_back(std::move(one));
  }
  Statement statement;
  statement.model = report.model = seal::model_name(path);
  statement.allow_symlinks = options.allow_symlinks;
  statement.ignored = report.ignored = ignored_paths(path, signature, options, report.notes);
  require_text(statement.model, path);
  for (const std::string& one : statement.ignored) require_text(one, path);
  const seal::FileRules rules = {report.ignored, options.allow_symlinks};
  const ModelFiles found = seal::list_files(path, rules);
  if (found.files.empty()) fail(Errc::invalid_argument, display(path), "holds no file that could be signed");
  const auto digests = seal::hash_files(found.files, options.progress);
  require_same(found, seal::list_files(path, rules), path);
  for (std::size_t i = 0; i < digests.size(); ++i)
    statement.files.push_back({found.files[i].name, digests[i]});
  note_links(found, report.notes);
  if (!seal::place_in_model(path, options.key).empty())
    report.notes.push_back(
        fmt::format("{} is the private key, and lies in the model: do not ship it", display(options.key)));
  report.files = found.files.size();
  report.bytes = bytes_in_all(found.files);
  bundle.payload = seal::statement_text(statement);
  bundle.signature = key.sign(seal::encoded(bundle.payload));
  save_text(seal::bundle_text(bundle), signature, options.overwrite);
  return report;
}

SignatureReport verify_signature(const std::string& path, const std::string& signature,
                                 const SignatureOptions& options) {
  const std::string where = display(signature);
  const Bundle bundle = seal::read_bundle(bounded_text(signature, seal::kMaxBundle, "a signature"), where);
  SignatureReport report;
  report.notes = bundle.notes;
  report.signer = check_signer(bundle, options, where);
  Statement statement = seal::read_statement(bundle.payload, where);
  rename_single_file(statement, path);
  report.model = statement.model;
  report.files = statement.files.size();
  report.ignored = ignored_paths(path, signature, options, report.notes);
  for (const std::string& one : statement.ignored) {
    std::string plain = seal::plain_path(one);
    if (!plain.empty() &&
        std::find(report.ignored.begin(), report.ignored.end(), plain) == report.ignored.end())
      report.ignored.push_back(std::move(plain));
  }
  const seal::FileRules rules = {report.ignored, options.allow_symlinks};
  const auto look = [&] {
    return options.ignore_unsigned ? seal::find_files(path, statement.files, rules)
                                   : seal::list_files(path, rules);
  };
  const ModelFiles found = look();
  const auto both = matched(statement, found, report.findings);
  std::vector<ModelFile> files;
  for (const auto& [expected, file] : both) files.push_back(*file);
  const auto digests = seal::hash_files(files, options.progress);
  require_same(found, look(), path);
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (digests[i] != both[i].first->digest)
      report.findings.push_back({SignatureFault::changed, both[i].first->name});
  }
  note_links(found, report.notes);
  report.bytes = bytes_in_all(files);
  return report;
}

}  // namespace ballast
