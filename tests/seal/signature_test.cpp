// SPDX-License-Identifier: Apache-2.0
// Bundles and statements from strangers, and models that change under one's hands. What the reference's tool
// says about the same files is compared in tests/cli/test_sign.py.
#include <gmock/gmock.h>

#include <filesystem>

#include "ballast/verify.h"
#include "base/bytes.h"
#include "base/scratch.h"
#include "seal/bundle.h"
#include "seal/signing.h"
#include "seal/statement.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFixtures = BALLAST_TEST_DATA "/fixtures/signatures/";
const std::string kModel = kFixtures + "model";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

SignatureOptions public_key(const std::string& curve = "p256") {
  return {.key = kFixtures + "files/pub-" + curve + ".pem"};
}

SignatureOptions secret_key(const std::string& curve = "p256") {
  return {.key = kFixtures + "files/key-" + curve + ".pem"};
}

// Small, so that each of its bytes can be changed.
std::string some_bundle() {
  Bundle bundle;
  bundle.hint = "ab";
  bundle.payload = "{}";
  bundle.signature = Der(8);
  return bundle_text(bundle);
}

Errc code_for(const std::string& bundle) {
  return code_of([&] { static_cast<void>(read_bundle(bundle, "x.sig")); });
}

Errc code_for_statement(const std::string& text) {
  return code_of([&] { static_cast<void>(read_statement(text, "x.sig")); });
}

Statement some_statement() {
  return {"model", {{"a/b", {}}, {"a-b", {}}}, false, {"model.sig", ".git"}};
}

TEST(Bundle, WhatIsWrittenIsRead) {
  const Bundle read = read_bundle(some_bundle(), "x.sig");
  EXPECT_EQ(read.hint, "ab");
  EXPECT_EQ(read.payload, "{}");
  EXPECT_EQ(read.signature, Der(8));
  Bundle chain = read;
  chain.certificates = {Der(3), Der(4)};
  EXPECT_EQ(read_bundle(bundle_text(chain), "x.sig").certificates, chain.certificates);
}

TEST(Bundle, WhatIsNotCheckedIsSaid) {
  const std::string good = some_bundle();
  EXPECT_THAT(read_bundle(replaced(good, R"("tlogEntries":[])", R"("tlogEntries":[{}])"), "").notes,
              ElementsAre(HasSubstr("transparency log")));
  EXPECT_THAT(
      read_bundle(replaced(good, R"("tlogEntries":[])", R"("tlogEntries":[],"timestampVerificationData":{})"),
                  "")
          .notes,
      ElementsAre(HasSubstr("stamps of time")));
  EXPECT_THAT(read_bundle(replaced(good, R"("keyid":""})", R"("keyid":""},{"sig":""})"), "").notes,
              ElementsAre(HasSubstr("the first one counts")));
  EXPECT_THAT(read_bundle(good, "").notes, testing::IsEmpty());
}

TEST(Bundle, EveryTruncationIsRefused) {
  const std::string whole = some_bundle();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(static_cast<void>(read_bundle(whole.substr(0, size), "x.sig")), Error) << size;
}

TEST(Bundle, WhatTheReferenceWouldNotTakeIsRefused) {
  const std::string good = some_bundle();
  EXPECT_EQ(code_for(replaced(good, R"("hint")", R"("hins")")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("keyid":"")", R"("keyid":"","more":1)")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("payload":"e30=")", R"("payload":"e30")")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("payload":"e30=")", R"("payload":"e31=")")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("payload":"e30=")", R"("payload":"e3 0")")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("payload":"e30=")", R"("payload":7)")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("payload":"e30=",)", "")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, "in-toto+json", "in-toto")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"(,"signatures":[{)", R"(,"signatures":[],"x":[{)")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"("publicKey":{"hint":"ab"},)", "")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, R"({"hint":"ab"})", R"({},"x509CertificateChain":{"certificates":[]})")),
            Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, "vnd.dev.sigstore", "vnd.dev.sigstone")), Errc::bad_bundle);
  EXPECT_EQ(code_for(replaced(good, "\"ab\"", "\"\xff\"")), Errc::bad_utf8);
  EXPECT_EQ(code_for("[]"), Errc::bad_bundle);
  EXPECT_EQ(code_for(good + "{}"), Errc::bad_json);
}

TEST(Bundle, NoKeyOfAnyObjectComesTwice) {
  const std::string good = some_bundle();
  for (const std::string member : {R"("mediaType":)", R"("verificationMaterial":)", R"("publicKey":)",
                                   R"("hint":)", R"("tlogEntries":)", R"("dsseEnvelope":)", R"("payload":)",
                                   R"("payloadType":)", R"("signatures":)", R"("sig":)", R"("keyid":)"}) {
    const std::size_t at = good.find(member);
    ASSERT_NE(at, std::string::npos) << member;
    // The value ends where the same member could stand again.
    std::size_t end = at + member.size();
    int depth = 0;
    for (bool in_text = false; in_text || depth > 0 || (good[end] != ',' && good[end] != '}'); ++end) {
      if (good[end] == '"') in_text = !in_text;
      if (good[end] == '{' || good[end] == '[') ++depth;
      if (good[end] == '}' || good[end] == ']') --depth;
    }
    EXPECT_EQ(code_for(good.substr(0, end) + ',' + good.substr(at, end - at) + good.substr(end)),
              Errc::duplicate_key)
        << member;
  }
  EXPECT_EQ(code_for(replaced(good, R"("tlogEntries":[])", R"("tlogEntries":[{"a":{"b":1,"b":1}}])")),
            Errc::duplicate_key);
}

TEST(Bundle, PythonsBytesAreWhat02Signed) {
  EXPECT_THAT(encoded_as_0_2("{\n \"a\": 1\t}"), HasSubstr(R"( 11 b'{\n "a": 1\t}')"));
  // repr() of CPython 3.11.
  EXPECT_THAT(encoded_as_0_2("it's \"x\"\\\r\x01\x7f\xc3\xa9"),
              HasSubstr(R"( 14 b'it\'s "x"\\\r\x01\x7f\xc3\xa9')"));
  EXPECT_THAT(encoded_as_0_2("it's"), HasSubstr(R"( 4 b"it's")"));
  EXPECT_EQ(encoded("it's"), "DSSEv1 28 application/vnd.in-toto+json 4 it's");
}

TEST(Statement, WhatIsWrittenIsRead) {
  EXPECT_EQ(read_statement(statement_text(some_statement()), "x.sig"), some_statement());
}

// Its predicate counted for nothing, so nothing that stands there now may hide a file.
TEST(Statement, OfVersion02HasNoIgnoredPaths) {
  const std::string good = statement_text(some_statement());
  const std::string old =
      replaced(good, "https://model_signing/signature/v1.0", "https://model_signing/Digests/v0.1");
  EXPECT_THAT(read_statement(good, "x.sig").ignored, ElementsAre("model.sig", ".git"));
  EXPECT_THAT(read_statement(old, "x.sig").ignored, testing::IsEmpty());
}

// Of the specification's example.
TEST(Statement, TheRootIsTheHashOfTheDigestsInTheirOrder) {
  const auto digest = [](const std::string& text) {
    Sha256::Digest bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
    return bytes;
  };
  const Statement statement = {
      "m",
      {{"a", digest("bc9a717db6064a32cbe9eae6fc40651dd6d36ef1757183f590eff2b1765d7ebc")},
       {"b", digest("32dcb1f8e1ae52d5963e56a6ba06ab58b424c15ed2a6b70d2feca1d089370028")}},
      false,
      {}};
  EXPECT_THAT(statement_text(statement),
              HasSubstr("92745110b1ab4368471cbe31664e10174e954b113a3df333db860317b2c6dec4"));
}

TEST(Statement, WhatCannotBeComparedWithFilesIsRefused) {
  const std::string good = statement_text(some_statement());
  const std::string zeros(64, '0');
  EXPECT_EQ(code_for_statement(replaced(good, "Statement/v1", "Statement/v0.1")), Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, "signature/v1.0", "signature/v2.0")), Errc::unsupported);
  EXPECT_EQ(code_for_statement(replaced(good, R"("method":"files")", R"("method":"shards")")),
            Errc::unsupported);
  EXPECT_EQ(code_for_statement(replaced(good, R"("algorithm":"sha256")", R"("algorithm":"md5")")),
            Errc::unsupported);
  EXPECT_EQ(code_for_statement(replaced(good, R"("hash_type":"sha256")", R"("hash_type":"blake3")")),
            Errc::unsupported);
  EXPECT_EQ(code_for_statement(replaced(good, R"("allow_symlinks":false)", R"("allow_symlinks":0)")),
            Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, zeros, std::string(63, '0'))), Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, zeros, std::string(63, '0') + 'g')), Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, zeros, std::string(63, '0') + '1')),
            Errc::bad_bundle);  // the root
  EXPECT_EQ(code_for_statement(replaced(good, "\"a/b\"", "\"../b\"")), Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, "\"a/b\"", "\"/b\"")), Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, "\"a/b\"", R"("a\u0000b")")), Errc::bad_bundle);
  EXPECT_EQ(code_for_statement(replaced(good, "\"a/b\"", "\"./a-b\"")), Errc::duplicate_key);
  EXPECT_EQ(code_for_statement(replaced(good, R"("predicate":{)", R"("x":1,"x":1,"predicate":{)")),
            Errc::duplicate_key);
  EXPECT_EQ(code_for_statement(
                replaced(good, R"("subject":[)", R"("subject":[{"name":"m","digest":{"sha256":""}},)")),
            Errc::bad_bundle);
}

// As Python's PurePosixPath has them.
TEST(Statement, PathsAreSortedByTheirParts) {
  EXPECT_TRUE(before_path("a/b", "a-b"));
  EXPECT_TRUE(before_path("a", "a/b"));
  EXPECT_TRUE(before_path("a/z", "b"));
  EXPECT_FALSE(before_path("a-b", "a/b"));
  EXPECT_EQ(plain_path("./a//b/."), "a/b");
  EXPECT_EQ(plain_path(""), ".");
  EXPECT_EQ(plain_path("a/../b"), "");
  EXPECT_EQ(plain_path("..a/b.."), "..a/b..");
}

class Signature : public Scratch {
 protected:
  Signature() { fs::create_directories(path("m/b")); }
};

TEST_F(Signature, AnyChangedByteOfABundleIsRefusedOrChangesNothing) {
  const std::string good = content(kFixtures + "files/1.1.1-key-p256.sig");
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write(path("x.sig"), bad);
    try {
      const auto report = verify_signature(kModel, path("x.sig"), public_key());
      EXPECT_TRUE(report.clean()) << at;
      EXPECT_EQ(read_bundle(bad, "").payload, read_bundle(good, "").payload) << at;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, good.size() - 1);  // nothing is left but a space
}

TEST_F(Signature, AFileThatChangesWhileItIsReadIsNotSigned) {
  const std::string model = path("m");
  write(path("m/a"), std::string(100, 'a'));
  SignatureOptions options = secret_key();
  const auto code = [&] { return code_of([&] { sign(model, path("s"), options); }); };
  options.progress = [&](std::uint64_t, std::uint64_t) { write(path("m/a"), std::string(99, 'b')); };
  EXPECT_EQ(code(), Errc::file_changed);
  options.progress = [&](std::uint64_t, std::uint64_t) { write(path("m/new"), "n"); };
  EXPECT_EQ(code(), Errc::file_changed);
  fs::remove(path("m/new"));
  EXPECT_FALSE(fs::exists(path("s")));
  options.progress = {};
  EXPECT_EQ(sign(model, path("s"), options).files, 1);
}

// The time of writing can be set back; that it was, cannot be hidden.
TEST_F(Signature, AFileThatChangesAndIsGivenItsOldTimeAgainIsNeitherSignedNorVerified) {
  const std::string model = path("m");
  const auto make = [&] {
    write(path("m/a"), std::string(100, 'a'));
    write(path("m/b/c"), std::string(50, 'c'));
    do {  // the clock of files goes in steps of milliseconds
      write(path("clock"), "");
    } while (fs::last_write_time(path("clock")) <= fs::last_write_time(path("m/b/c")));
  };
  const auto rewrite = [&](std::uint64_t done, std::uint64_t total) {
    if (done < total) return;
    for (const char* name : {"m/a", "m/b/c"}) {
      const auto before = fs::last_write_time(path(name));
      write(path(name), std::string(fs::file_size(path(name)), 'x'));
      fs::last_write_time(path(name), before);
    }
  };
  make();
  sign(model, path("s"), secret_key());
  SignatureOptions options = secret_key();
  options.progress = rewrite;
  EXPECT_EQ(code_of([&] { sign(model, path("t"), options); }), Errc::file_changed);
  EXPECT_FALSE(fs::exists(path("t")));
  make();
  options = public_key();
  EXPECT_TRUE(verify_signature(model, path("s"), options).clean());
  options.progress = rewrite;
  EXPECT_EQ(code_of([&] { static_cast<void>(verify_signature(model, path("s"), options)); }),
            Errc::file_changed);
}

TEST_F(Signature, ProgressCountsEveryByteOfAllFiles) {
  write(path("m/a"), std::string(3'000'000, 'a'));
  write(path("m/c"), std::string(1'000'001, 'b'));
  std::uint64_t last = 0;
  SignatureOptions options = secret_key();
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 4'000'001);
    EXPECT_GT(done, last);
    last = done;
  };
  EXPECT_EQ(sign(path("m"), path("s"), options).bytes, 4'000'001);
  EXPECT_EQ(last, 4'000'001);
}

TEST_F(Signature, EveryDifferenceIsNamed) {
  for (const char* name : {"a", "b/c", "b/d", "e"}) write(path(std::string("m/") + name), name);
  sign(path("m"), path("s"), secret_key("p521"));
  write(path("m/a"), "A");
  fs::rename(path("m/b/c"), path("m/b/x"));
  const SignatureReport report = verify_signature(path("m"), path("s"), public_key("p521"));
  std::vector<std::string> found;
  for (const SignatureFinding& finding : report.findings)
    found.push_back(std::string(name(finding.kind)) + ' ' + finding.name);
  EXPECT_THAT(found, ElementsAre("missing b/c", "added b/x", "changed a"));
  EXPECT_EQ(report.files, 4);
}

// The reference calls a single file ".", and sorts paths by their parts.
TEST_F(Signature, NamesAndOrderOfTheSpecificationAreReadToo) {
  const auto digest = [](const std::string& text) {
    Sha256 sha;
    sha.update(as_bytes(text));
    return sha.finish();
  };
  const auto signed_as = [&](const Statement& statement) {
    Bundle bundle;
    bundle.payload = statement_text(statement);
    bundle.signature =
        SigningKey::from_private_pem(content(secret_key().key), {}, "").sign(encoded(bundle.payload));
    write(path("s"), bundle_text(bundle));
  };
  write(path("m/f"), "f");
  signed_as({"f", {{"f", digest("f")}}, false, {}});
  EXPECT_TRUE(verify_signature(path("m/f"), path("s"), public_key()).clean());
  EXPECT_TRUE(verify_signature(path("m"), path("s"), public_key()).clean());
  write(path("m/b/c"), "c");
  write(path("m/b-c"), "d");
  signed_as({"m", {{"b-c", digest("d")}, {"b/c", digest("c")}, {"f", digest("f")}}, false, {}});
  EXPECT_TRUE(verify_signature(path("m"), path("s"), public_key()).clean());
}

TEST_F(Signature, APrivateKeyInTheModelIsSaid) {
  write(path("m/key.pem"), content(secret_key().key));
  EXPECT_THAT(sign(path("m"), path("s"), {.key = path("m/key.pem")}).notes,
              ElementsAre(HasSubstr("do not ship it")));
  EXPECT_THAT(sign(path("m"), path("t"), secret_key()).notes, testing::IsEmpty());
}

TEST_F(Signature, OneOfKeyAndCertificatesIsAsked) {
  const std::string by_key = kFixtures + "files/1.1.1-key-p256.sig";
  const std::string by_certificate = kFixtures + "files/1.1.1-certificate-p256.sig";
  const auto code = [](const std::string& signature, const SignatureOptions& options) {
    return code_of([&] { static_cast<void>(verify_signature(kModel, signature, options)); });
  };
  const SignatureOptions trust = {.certificate_chain = {kFixtures + "files/root.pem"}};
  SignatureOptions both = public_key();
  both.certificate_chain = trust.certificate_chain;
  EXPECT_EQ(code(by_key, {}), Errc::invalid_argument);
  EXPECT_EQ(code(by_key, both), Errc::invalid_argument);
  EXPECT_EQ(code(by_key, trust), Errc::wrong_signature);
  EXPECT_EQ(code(by_certificate, public_key()), Errc::wrong_signature);
  EXPECT_EQ(code(by_key, secret_key()), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { sign(kModel, "unused.sig", public_key()); }), Errc::invalid_argument);
  EXPECT_EQ(verify_signature(kModel, by_certificate, trust).signer, "CN=leaf-p256,O=Ballast tests");
}

}  // namespace
}  // namespace ballast::seal
