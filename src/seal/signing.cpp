// SPDX-License-Identifier: Apache-2.0
#include "seal/signing.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/fail.h"

namespace ballast::seal {
namespace {

struct Freeing {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(X509_STORE* store) const noexcept { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const noexcept { X509_STORE_CTX_free(context); }
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
  void operator()(STACK_OF(X509) * stack) const noexcept { sk_X509_free(stack); }  // not what is on it
};

template <class T>
using Owned = std::unique_ptr<T, Freeing>;

struct Curve {
  std::string_view name;
  const EVP_MD* (*hash)();
};

constexpr std::array<Curve, 3> kCurves = {
    {{"prime256v1", EVP_sha256}, {"secp384r1", EVP_sha384}, {"secp521r1", EVP_sha512}}};

void require_worked(bool worked, const char* what) {
  if (worked) return;
  ERR_clear_error();  // of this thread, which is not ours alone
  fail(Errc::unsupported, what, "OpenSSL refuses to compute it (a provider that leaves it out?)");
}

Owned<BIO> reader_of(std::string_view text) {
  Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  require_worked(bio != nullptr, "a text in memory");
  return bio;
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

// OpenSSL would ask on the terminal.
int give_passphrase(char* out, int room, int /*writing*/, void* passphrase) {
  const auto& text = *static_cast<const std::string_view*>(passphrase);
  if (text.size() > static_cast<std::size_t>(room)) return -1;
  std::copy(text.begin(), text.end(), out);
  return static_cast<int>(text.size());
}

std::string curve_name(const EVP_PKEY& key) {
  std::array<char, 80> name{};
  std::size_t length = 0;
  if (EVP_PKEY_get_group_name(&key, name.data(), name.size(), &length) == 1) return {name.data(), length};
  ERR_clear_error();
  return {};
}

Owned<X509> certificate_of(const Der& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* const end = at + der.size();
  Owned<X509> certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (!certificate || at != end) {
    ERR_clear_error();
    return nullptr;
  }
  return certificate;
}

Owned<X509> require_certificate(const Der& der, const std::string& where) {
  Owned<X509> certificate = certificate_of(der);
  if (!certificate) fail(Errc::bad_bundle, where, "a certificate of its chain is none");
  return certificate;
}

std::string subject_of(X509* certificate) {
  const Owned<BIO> out(BIO_new(BIO_s_mem()));
  require_worked(
      out && X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0,
      "the name in a certificate");
  return text_in(out.get());
}

}  // namespace

struct SigningKey::State {
  Owned<EVP_PKEY> key;
  const Curve* curve;
};

namespace {

SigningKey key_of(Owned<EVP_PKEY> key, Errc code, const std::string& where) {
  const std::string name = curve_name(*key);
  for (const Curve& curve : kCurves) {
    if (curve.name == name)
      return SigningKey(std::make_shared<const SigningKey::State>(SigningKey::State{std::move(key), &curve}));
  }
  const char* kind = EVP_PKEY_get0_type_name(key.get());
  fail(code, where,
       "is a key of kind {}; models are signed with EC keys on the curves P-256, P-384 and P-521",
       name.empty() ? (kind == nullptr ? "unknown" : kind) : name);
}

}  // namespace

SigningKey SigningKey::from_private_pem(std::string_view pem, std::string_view passphrase,
                                        const std::string& where) {
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, give_passphrase, &passphrase));
  ERR_clear_error();
  if (!key) {
    const bool is_encrypted = pem.find("ENCRYPTED") != std::string_view::npos;
    fail(Errc::invalid_argument, where, "{}",
         !is_encrypted ? "holds no private key in PEM ('openssl ecparam -name prime256v1 -genkey' makes one)"
         : passphrase.empty() ? "is encrypted: give its passphrase in a file (passphrase_file)"
                              : "is encrypted, and the passphrase does not open it");
  }
  return key_of(std::move(key), Errc::invalid_argument, where);
}

SigningKey SigningKey::from_public_pem(std::string_view pem, const std::string& where) {
  if (pem.find("PRIVATE KEY-----") != std::string_view::npos)
    fail(
        Errc::invalid_argument, where,
        "holds a private key; signatures are checked with the public one ('openssl pkey -pubout' prints it)");
  Owned<EVP_PKEY> key(PEM_read_bio_PUBKEY(reader_of(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!key) fail(Errc::invalid_argument, where, "holds no public key in PEM");
  return key_of(std::move(key), Errc::invalid_argument, where);
}

Der SigningKey::sign(std::string_view text) const {
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const auto bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  require_worked(context &&
                     EVP_DigestSignInit(context.get(), nullptr, state_->curve->hash(), nullptr,
                                        state_->key.get()) == 1 &&
                     EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()) == 1,
                 "ECDSA");
  Der signature(size);
  require_worked(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                                bytes, text.size()) == 1,
                 "ECDSA");
  signature.resize(size);
  return signature;
}

bool SigningKey::verify(std::string_view text, const Der& signature, SignedBy by) const {
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const EVP_MD* hash = by == SignedBy::curve ? state_->curve->hash() : EVP_sha256();
  require_worked(
      context && EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, state_->key.get()) == 1,
      "ECDSA");
  const int fits =
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  ERR_clear_error();
  return fits == 1;
}

std::string SigningKey::hint() const {
  const Owned<BIO> out(BIO_new(BIO_s_mem()));
  require_worked(out && PEM_write_bio_PUBKEY(out.get(), state_->key.get()) == 1, "a public key in PEM");
  Sha256 sha;
  sha.update(as_bytes(text_in(out.get())));
  return hex(sha.finish());
}

std::vector<Der> certificates_in(std::string_view pem, const std::string& where) {
  const Owned<BIO> in = reader_of(pem);
  std::vector<Der> all;
  while (const Owned<X509> certificate{PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)}) {
    Der der(static_cast<std::size_t>(std::max(0, i2d_X509(certificate.get(), nullptr))));
    auto* at = reinterpret_cast<unsigned char*>(der.data());
    require_worked(i2d_X509(certificate.get(), &at) > 0, "a certificate in DER");
    all.push_back(std::move(der));
  }
  const unsigned long error = ERR_peek_last_error();
  const bool is_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!is_end) fail(Errc::invalid_argument, where, "certificate {} in it is damaged", all.size() + 1);
  if (all.empty()) fail(Errc::invalid_argument, where, "holds no certificate in PEM");
  return all;
}

std::string name_for_key(const Der& certificate, const SigningKey& key, const std::string& where) {
  const Owned<X509> read = require_certificate(certificate, where);
  const EVP_PKEY* its = X509_get0_pubkey(read.get());
  const bool is_same = its != nullptr && EVP_PKEY_eq(its, key.state().key.get()) == 1;
  ERR_clear_error();
  if (!is_same) fail(Errc::invalid_argument, where, "is the certificate of another key");
  return subject_of(read.get());
}

namespace {

std::time_t began_to_be_valid(const X509& certificate, const std::string& where) {
  std::tm time{};
  if (ASN1_TIME_to_tm(X509_get0_notBefore(&certificate), &time) != 1) {
    ERR_clear_error();
    fail(Errc::bad_bundle, where, "its certificate does not say since when it is valid");
  }
  return timegm(&time);
}

void require_leads_to_trust(X509* leaf, const std::vector<Owned<X509>>& others, X509_STORE* trusted,
                            std::time_t when, const std::string& where) {
  const Owned<STACK_OF(X509)> between(sk_X509_new_null());
  for (const Owned<X509>& other : others)
    require_worked(between && sk_X509_push(between.get(), other.get()) > 0, "X.509");
  const Owned<X509_STORE_CTX> context(X509_STORE_CTX_new());
  require_worked(context && X509_STORE_CTX_init(context.get(), trusted, leaf, between.get()) == 1, "X.509");
  X509_STORE_CTX_set_time(context.get(), 0, when);
  const bool leads = X509_verify_cert(context.get()) == 1;
  const int reason = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (leads) return;
  fail(Errc::wrong_signature, where, "its certificate, of {}, does not lead to one that is trusted: {}",
       quoted(subject_of(leaf)), X509_verify_cert_error_string(reason));
}

bool may_sign(X509* certificate) {
  const std::uint32_t flags = X509_get_extension_flags(certificate);
  if ((flags & EXFLAG_INVALID) != 0) return false;
  if ((flags & EXFLAG_KUSAGE) != 0 && (X509_get_key_usage(certificate) & KU_DIGITAL_SIGNATURE) != 0)
    return true;
  return (flags & EXFLAG_XKUSAGE) != 0 && (X509_get_extended_key_usage(certificate) & XKU_CODE_SIGN) != 0;
}

}  // namespace

Signer trusted_signer(const std::vector<Der>& chain, const std::vector<Der>& trusted,
                      const std::string& where) {
  const Owned<X509> leaf = require_certificate(chain.front(), where);
  std::vector<Owned<X509>> others;
  for (auto at = chain.begin() + 1; at != chain.end(); ++at)
    others.push_back(require_certificate(*at, where));
  const Owned<X509_STORE> store(X509_STORE_new());
  for (const Der& der : trusted) {
    const Owned<X509> certificate = require_certificate(der, where);
    require_worked(store && X509_STORE_add_cert(store.get(), certificate.get()) == 1, "X.509");
  }
  require_worked(store != nullptr, "X.509");
  require_leads_to_trust(leaf.get(), others, store.get(), began_to_be_valid(*leaf, where), where);
  if (!may_sign(leaf.get()))
    fail(Errc::wrong_signature, where,
         "its certificate, of {}, may not sign: neither digitalSignature nor codeSigning",
         quoted(subject_of(leaf.get())));
  Owned<EVP_PKEY> key(X509_get_pubkey(leaf.get()));
  ERR_clear_error();
  if (!key) fail(Errc::unsupported, where, "the key of its certificate is of a kind OpenSSL does not know");
  return {key_of(std::move(key), Errc::unsupported, where), subject_of(leaf.get())};
}

std::string name_in_certificate(const Der& certificate) {
  const Owned<X509> read = certificate_of(certificate);
  if (!read) return {};
  const Owned<GENERAL_NAMES> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(read.get(), NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  std::string text;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_EMAIL && name->type != GEN_URI) continue;
    const ASN1_STRING* letters = name->d.ia5;
    if (!text.empty()) text += ", ";
    text.append(reinterpret_cast<const char*>(ASN1_STRING_get0_data(letters)),
                static_cast<std::size_t>(ASN1_STRING_length(letters)));
  }
  return text;
}

}  // namespace ballast::seal
