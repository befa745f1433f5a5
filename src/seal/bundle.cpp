// SPDX-License-Identifier: Apache-2.0
#include "seal/bundle.h"

#include <optional>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
#include "seal/once.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

constexpr std::string_view kMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";

class BundleReader : OnceReader {
 public:
  explicit BundleReader(JsonScanner& json) : OnceReader(json) {}

  Bundle read() {
    object("the bundle", [&](std::string_view key) {
      if (key == "mediaType") return set(media_type_, std::string(text(key)));
      if (key == "verificationMaterial") return material();
      if (key == "dsseEnvelope") return optional(key, [&] { envelope(); });
      if (key == "messageSignature") return optional(key, [&] { skip_to(has_message_); });
      unknown(key);
    });
    json_.finish();
    check();
    return std::move(bundle_);
  }

 private:
  void material() {
    object("verificationMaterial", [&](std::string_view key) {
      has_material_ = true;
      if (key == "publicKey") return optional(key, [&] { public_key(); });
      if (key == "x509CertificateChain") return optional(key, [&] { chain(); });
      if (key == "certificate") return optional(key, [&] { keyless_ = certificate(); });
      if (key == "tlogEntries") return log_entries();
      if (key == "timestampVerificationData") return optional(key, [&] { skip_to(has_time_); });
      unknown(key);
    });
  }

  // Before 1.1 the key itself was here, which proves nothing and is not used.
  void public_key() {
    has_key_ = true;
    object("publicKey", [&](std::string_view key) {
      if (key == "hint") return optional(key, [&] { bundle_.hint = text(key); });
      if (key == "rawBytes") return static_cast<void>(bytes(key));
      if (key == "keyDetails") return static_cast<void>(text(key));
      unknown(key);
    });
  }

  void chain() {
    has_chain_ = true;
    object("x509CertificateChain", [&](std::string_view key) {
      if (key != "certificates") unknown(key);
      array(key, [&] { bundle_.certificates.push_back(certificate()); });
    });
  }

  Der certificate() {
    std::optional<Der> der;
    object("a certificate", [&](std::string_view key) {
      if (key != "rawBytes") unknown(key);
      der = bytes(key);
    });
    if (!der) missing("rawBytes of a certificate");
    return *der;
  }

  void log_entries() {
    std::size_t entries = 0;
    array("tlogEntries", [&] {
      skip_once(json_);
      ++entries;
    });
    if (entries > 0) bundle_.notes.emplace_back("entries of a transparency log are in it, and not checked");
  }

  void envelope() {
    has_envelope_ = true;
    object("dsseEnvelope", [&](std::string_view key) {
      if (key == "payload") return set(payload_, std::string(as_text(bytes(key))));
      if (key == "payloadType") return set(payload_type_, std::string(text(key)));
      if (key == "signatures") return array(key, [&] { signature(); });
      unknown(key);
    });
  }

  void signature() {
    std::optional<Der> der;
    object("a signature", [&](std::string_view key) {
      if (key == "sig") {
        der = bytes(key);
      } else if (key == "keyid") {
        optional(key, [&] { static_cast<void>(text(key)); });
      } else {
        unknown(key);
      }
    });
    if (!der) missing("sig of a signature");
    if (++signatures_ == 1) bundle_.signature = *der;
  }

  void check() {
    if (!media_type_) missing("mediaType");
    if (!media_type_->starts_with("application/vnd.dev.sigstore.bundle"))
      fail(Errc::bad_bundle, where(), "its mediaType is {}, that of a bundle is {}", quoted(*media_type_),
           kMediaType);
    if (!has_material_) missing("verificationMaterial");
    refuse_other_kinds();
    if (has_key_ && has_chain_) wrong("has a public key and certificates: one of them must have signed");
    if (!has_key_ && !has_chain_) missing("publicKey and x509CertificateChain");
    if (has_chain_ && bundle_.certificates.empty()) wrong("has no certificate in its chain");
    if (has_message_ || !has_envelope_) wrong("has no dsseEnvelope alone");
    if (!payload_) missing("payload");
    if (!payload_type_) missing("payloadType");
    if (*payload_type_ != kPayloadType)
      fail(Errc::bad_bundle, where(), "its payloadType is {}, that of a signed model is {}",
           quoted(*payload_type_), kPayloadType);
    if (signatures_ == 0) missing("signatures");
    if (has_time_) bundle_.notes.emplace_back("stamps of time are in it, and not checked");
    if (signatures_ > 1)
      bundle_.notes.push_back(fmt::format("{} signatures are in it; the first one counts", signatures_));
    bundle_.payload = std::move(*payload_);
  }

  // In the order of how much they say about what it is.
  void refuse_other_kinds() const {
    if (keyless_ && !has_key_ && !has_chain_)
      fail(Errc::unsupported, where(),
           "is signed without a key of one's own (keyless, by Sigstore){}, which is not checked: that takes "
           "Sigstore's roots and its log, over the network ('model_signing verify sigstore' does it)",
           named_in(*keyless_));
    if (keyless_) wrong("has a certificate of Sigstore's beside a key or a chain");
    if (*media_type_ != kMediaType)
      fail(Errc::unsupported, where(), "is a bundle of form {}; {} is the one that is read",
           quoted(*media_type_), kMediaType);
    if (has_message_ && !has_envelope_)
      fail(Errc::unsupported, where(),
           "signs the bytes of one file (messageSignature), not a list of files; 'cosign verify-blob' checks "
           "such a signature");
  }

  static std::string named_in(const Der& certificate) {
    const std::string name = name_in_certificate(certificate);
    return name.empty() ? "" : fmt::format(", by {} as its certificate has it", quoted(name));
  }

  // null stands for a member that is not there.
  template <class Read>
  void optional(std::string_view /*key*/, Read&& read) {
    if (json_.peek() == Kind::null)
      json_.null();
    else
      read();
  }

  void skip_to(bool& seen) {
    seen = true;
    skip_once(json_);
  }

  static void set(std::optional<std::string>& to, std::string value) { to = std::move(value); }

  Der bytes(std::string_view key) {
    auto read = from_padded_base64(text(key));
    if (!read) fail(Errc::bad_bundle, where(), "{} is not Base64", quoted(key));
    return std::move(*read);
  }

  [[noreturn]] void unknown(std::string_view key) const {
    fail(Errc::bad_bundle, where(), "has a member {}, which no bundle has", quoted(key));
  }

  [[noreturn]] void missing(std::string_view what) const {
    fail(Errc::bad_bundle, where(), "has no {}: is it the signature of a model?", what);
  }

  [[noreturn]] void wrong(std::string_view what) const { fail(Errc::bad_bundle, where(), "{}", what); }

  Bundle bundle_;
  std::optional<std::string> media_type_;
  std::optional<std::string> payload_;
  std::optional<std::string> payload_type_;
  std::optional<Der> keyless_;  // the certificate Sigstore made for one signature
  std::size_t signatures_ = 0;
  bool has_material_ = false;
  bool has_key_ = false;
  bool has_chain_ = false;
  bool has_envelope_ = false;
  bool has_message_ = false;
  bool has_time_ = false;
};

}  // namespace

Bundle read_bundle(std::string text, const std::string& where) {
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8 text: is it the signature of a model?");
  text.append(JsonScanner::kPadding, '\0');
  JsonScanner json({text.data(), text.size() - JsonScanner::kPadding}, where);
  return BundleReader(json).read();
}

std::string bundle_text(const Bundle& bundle) {
  JsonWriter json;
  json.begin_object().member("mediaType", kMediaType).key("verificationMaterial").begin_object();
  if (bundle.certificates.empty()) {
    json.key("publicKey").begin_object().member("hint", bundle.hint).end_object();
  } else {
    json.key("x509CertificateChain").begin_object().key("certificates").begin_array();
    for (const Der& certificate : bundle.certificates)
      json.begin_object().member("rawBytes", padded_base64(certificate)).end_object();
    json.end_array().end_object();
  }
  json.key("tlogEntries").begin_array().end_array().end_object();
  json.key("dsseEnvelope").begin_object().member("payload", padded_base64(as_bytes(bundle.payload)));
  json.member("payloadType", kPayloadType).key("signatures").begin_array();
  json.begin_object().member("sig", padded_base64(bundle.signature)).member("keyid", "").end_object();
  json.end_array().end_object().end_object();
  return std::move(json).text();
}

std::string encoded(std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", kPayloadType.size(), kPayloadType, payload.size(), payload);
}

std::string encoded_as_0_2(std::string_view payload) {
  const bool in_double =
      payload.find('\'') != std::string_view::npos && payload.find('"') == std::string_view::npos;
  const char quote = in_double ? '"' : '\'';
  std::string printed = "b";
  printed += quote;
  for (const char c : payload) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      printed.append({'\\', c});
    else if (c == '\n')
      printed += "\\n";
    else if (c == '\r')
      printed += "\\r";
    else if (c == '\t')
      printed += "\\t";
    else if (byte < 0x20 || byte >= 0x7f)
      printed += fmt::format("\\x{:02x}", byte);
    else
      printed += c;
  }
  printed += quote;
  return fmt::format("DSSEV1 {} {} {} {}", kPayloadType.size(), kPayloadType, payload.size(), printed);
}

}  // namespace ballast::seal
