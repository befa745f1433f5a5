// SPDX-License-Identifier: Apache-2.0
// Any bytes as the signature of a model: refused, or a bundle that is read the same when it is written again.
// The text it signs is taken for a statement, whoever signed it, and its certificates for certificates; and
// nothing fits the key of the seeds but what that key signed.
#include <cstdint>
#include <string>

#include "ballast/error.h"
#include "seal/bundle.h"
#include "seal/signing.h"
#include "seal/statement.h"
#include "watched.h"

namespace {

using namespace ballast;
using fuzzing::complain;

// The public key of tests/fixtures/signatures/files/pub-p256.pem, and what was signed with it.
const std::string kPublicKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwZhtOlhXB5Y1GHW0pGxF9WqTcuMY\n"
    "a5lBXx/LlPOPLW0KMOjT5e28QnQlWTEU+AZbJkp1eTTVdtI4BSbaAyVn1w==\n"
    "-----END PUBLIC KEY-----\n";
constexpr std::string_view kSigned = "weights.bin";  // is in every statement it signed

void check_statement(const std::string& payload) {
  seal::Statement statement;
  try {
    statement = seal::read_statement(payload, "fuzz");
  } catch (const Error&) {
    return;
  }
  if (seal::read_statement(seal::statement_text(statement), "fuzz").files != statement.files)
    complain("a statement is read otherwise when it is written again");
  for (const seal::SignedFile& file : statement.files) {
    if (seal::plain_path(file.name) != file.name) complain("a path that is not plain");
  }
}

void check_certificates(const seal::Bundle& bundle) {
  for (const seal::Der& one : bundle.certificates) static_cast<void>(seal::name_in_certificate(one));
  try {
    if (!bundle.certificates.empty())
      static_cast<void>(seal::trusted_signer(bundle.certificates, {bundle.certificates.back()}, "fuzz"));
  } catch (const Error&) {
  }
}

void check_signature(const seal::Bundle& bundle) {
  static const seal::SigningKey key = seal::SigningKey::from_public_pem(kPublicKey, "fuzz");
  const bool fits =
      key.verify(seal::encoded(bundle.payload), bundle.signature, seal::SignedBy::curve) ||
      key.verify(seal::encoded_as_0_2(bundle.payload), bundle.signature, seal::SignedBy::sha256);
  if (fits && bundle.payload.find(kSigned) == std::string::npos) complain("a signature of something else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::Limits limits(size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_statement(text);
  seal::Bundle bundle;
  try {
    bundle = seal::read_bundle(text, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  const seal::Bundle again = seal::read_bundle(seal::bundle_text(bundle), "fuzz");
  if (again.payload != bundle.payload || again.signature != bundle.signature ||
      again.certificates != bundle.certificates || (bundle.certificates.empty() && again.hint != bundle.hint))
    complain("a bundle is read otherwise when it is written again");
  check_statement(bundle.payload);
  check_certificates(bundle);
  check_signature(bundle);
  return 0;
}
