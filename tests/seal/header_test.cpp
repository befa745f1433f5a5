// SPDX-License-Identifier: Apache-2.0
// Headers from strangers.
#include "seal/header.h"

#include <gmock/gmock.h>

#include "base/error_of.h"
#include "seal/age_files.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

using testing::HasSubstr;

std::string bytes_of(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// A header of these lines, with a right MAC behind them.
std::string with_mac(const std::string& lines) {
  std::string text = std::string(kVersionLine) + lines + "---";
  const std::string mac = base64(hmac_sha256(hkdf(some_file_key().bytes(), {}, "header"), text));
  return text + ' ' + mac + '\n' + payload_of("w", some_file_key());
}

// A stanza of ours as its two lines.
std::string good_stanza() {
  const Stanza stanza = wrap(some_file_key(), {kRecipient}, "").front();
  return "-> X25519 " + stanza.arguments[1] + '\n' + base64(stanza.body) + '\n';
}

Errc code_for(const std::string& file) {
  return code_of([&] { static_cast<void>(open_age(file)); });
}

TEST(AgeHeader, OneOfOursIsRead) {
  EXPECT_EQ(text_of(*open_age(with_mac(good_stanza()))), "w");
}

TEST(AgeHeader, StanzasOfOtherKindsAreSkipped) {
  const std::string grease = "-> joint-oil-and-gas ~!\x22 }\n" + std::string(64, 'A') + "\n\n";
  EXPECT_EQ(text_of(*open_age(with_mac(grease + good_stanza() + "-> x\n\n"))), "w");
}

TEST(AgeHeader, WhatAgeWouldNotWriteIsRefused) {
  const std::string good = good_stanza();
  const std::string argument = good.substr(10, 43);
  const std::string body = good.substr(54, 43);
  const auto stanza = [](const std::string& arguments, const std::string& lines) {
    return with_mac("-> " + arguments + "\n" + lines + "\n");
  };
  const std::map<std::string, std::string> refused = {
      {"no stanza at all", with_mac("")},
      {"an empty argument", stanza("X25519  " + argument, body)},
      {"a space at the end", stanza("X25519 " + argument + " ", body)},
      {"a carriage return", stanza("X25519 " + argument + "\r", body)},
      {"a control character", stanza("X25519 " + argument + "\x7f", body)},
      {"text beyond ASCII", stanza("X25519 " + argument + " \xc3\xa9", body)},
      {"no argument", stanza("", body)},
      {"padding", stanza("X25519 " + argument, body + "=")},
      {"padding in an argument", stanza("X25519 " + argument + "=", body)},
      {"a letter that is none of Base64's", stanza("X25519 " + argument, body.substr(1) + "-")},
      {"bits that mean nothing in a body", stanza("X25519 " + argument, body.substr(0, 42) + "B")},
      {"bits that mean nothing in an argument", stanza("X25519 " + argument.substr(0, 42) + "B", body)},
      {"a line of 65 letters", stanza("x", std::string(65, 'A'))},
      {"a full line as the last", stanza("x", std::string(64, 'A'))},
      {"a short point", stanza("X25519 " + argument.substr(0, 42), body)},
      {"no point", stanza("X25519", body)},
      {"two points", stanza("X25519 " + argument + " " + argument, body)},
      {"a short file key", stanza("X25519 " + argument, body.substr(0, 40))},
      {"a long file key", stanza("X25519 " + argument, body + "AAAA")},
      {"no line before the MAC", with_mac(good + "\n")},
      {"a passphrase beside a key",
       with_mac(good + "-> scrypt " + base64(as_bytes(some_text(16))) + " 10\n" + body + "\n")},
      {"two passphrases", with_mac("-> scrypt " + base64(as_bytes(some_text(16))) + " 10\n" + body +
                                   "\n-> scrypt " + base64(as_bytes(some_text(16))) + " 10\n" + body + "\n")},
      {"a short salt", stanza("scrypt " + base64(as_bytes(some_text(15))) + " 10", body)},
      {"a work factor with a zero", stanza("scrypt " + base64(as_bytes(some_text(16))) + " 010", body)},
      {"a work factor of 0", stanza("scrypt " + base64(as_bytes(some_text(16))) + " 0", body)},
      {"a negative work factor", stanza("scrypt " + base64(as_bytes(some_text(16))) + " -1", body)},
      {"a work factor with a sign", stanza("scrypt " + base64(as_bytes(some_text(16))) + " +1", body)},
      {"a work factor in hexadecimal", stanza("scrypt " + base64(as_bytes(some_text(16))) + " 0xa", body)},
  };
  for (const auto& [what, file] : refused) EXPECT_EQ(code_for(file), Errc::bad_age) << what;
}

TEST(AgeHeader, LinesEndInLfAlone) {
  std::string file = with_mac(good_stanza());
  file.replace(0, kVersionLine.size(), "age-encryption.org/v1\r\n");
  EXPECT_EQ(code_for(file), Errc::unsupported);
}

TEST(AgeHeader, OtherVersionsAndArmorAreNamed) {
  EXPECT_EQ(code_for("age-encryption.org/v2\n-> x\n\n--- \n"), Errc::unsupported);
  EXPECT_THAT(
      error_of([] { static_cast<void>(open_age("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl")); }).what(),
      HasSubstr("in armor"));
  EXPECT_EQ(code_for("something else"), Errc::bad_age);
}

// All points whose shared secret is zero, whatever the key: RFC 7748 and the orders 1, 2, 4 and 8 of the
// curve.
TEST(AgeHeader, PointsOfLowOrderAreRefused) {
  const std::string zeros(32, '\0');
  std::string one = zeros;
  one[0] = 1;
  const std::string order8 = bytes_of({0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3,
                                       0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
                                       0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00});
  const std::string also8 = bytes_of({0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1,
                                      0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c,
                                      0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57});
  std::string p = std::string(32, '\xff');  // 2^255 - 19, and the numbers around it
  p[31] = 0x7f;
  for (const std::string& point : {zeros, one, order8, also8, p.replace(0, 1, "\xec"),
                                   p.replace(0, 1, "\xed"), p.replace(0, 1, "\xee")}) {
    EXPECT_EQ(code_for(with_mac("-> X25519 " + base64(as_bytes(point)) + "\n" +
                                base64(as_bytes(some_text(32))) + "\n")),
              Errc::bad_age);
  }
}

TEST(AgeHeader, APassphraseThatAsksForTooMuchWorkIsRefusedBeforeIt) {
  for (const char* factor :
       {"21", "22", "63", "64", "99", "100", "4294967296", "99999999999999999999999999"}) {
    const std::string file = with_mac("-> scrypt " + base64(as_bytes(some_text(16))) + " " + factor + "\n" +
                                      base64(as_bytes(some_text(32))) + "\n");
    EXPECT_EQ(code_for(file), Errc::expansion_limit) << factor;
  }
}

TEST(AgeHeader, AChangedMacIsRefused) {
  std::string file = with_mac(good_stanza());
  const std::size_t mac = file.find("\n---") + 5;
  file[mac] = file[mac] == 'A' ? 'B' : 'A';
  EXPECT_EQ(code_for(file), Errc::bad_tag);
}

// Sizes that nobody writes are read no further than the limit, whatever follows.
TEST(AgeHeader, LongHeadersAreReadUpToALimit) {
  const auto refuse = [](const std::string& file, Errc code) {
    const auto source = source_of(file);
    EXPECT_EQ(code_of([&] { static_cast<void>(read_header(*source)); }), code);
    EXPECT_LE(source->bytes_read(), 2 * kMaxHeaderBytes);
  };
  const std::string version(kVersionLine);
  refuse(version + "-> " + std::string(std::size_t{8} << 20U, 'a'), Errc::header_too_large);
  refuse(version + "-> x\n" + std::string(std::size_t{8} << 20U, 'A'), Errc::header_too_large);
  std::string lines = version + "-> x\n";
  while (lines.size() < (std::size_t{2} << 20U)) lines += std::string(64, 'A') + "\n";
  refuse(lines, Errc::header_too_large);
  std::string stanzas = version;
  for (int i = 0; i < 5000; ++i) stanzas += "-> x\n\n";
  refuse(stanzas, Errc::too_many);
  refuse(version + "-> x\n", Errc::truncated);
}

TEST(AgeText, Base64IsThatOfTheRfc) {
  const std::pair<std::string, std::string> pairs[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},         {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : pairs) {
    EXPECT_EQ(base64(as_bytes(plain)), text);
    EXPECT_EQ(as_text(from_base64(text).value()), plain);
  }
  for (const char* bad : {"Z", "Zg==", "Zh", "Zm9", "Zm9vY", "Zm 9", "Zm9v\n", "_-_-"}) {
    if (std::string_view(bad) == "Zm9") continue;  // whose last bits are looked at below
    EXPECT_FALSE(from_base64(bad)) << bad;
  }
  EXPECT_FALSE(from_base64("Zm9"));
}

TEST(AgeText, KeysAreThoseOfAgeKeygen) {
  const Key key = parse_identities(kIdentity, "test").front();
  EXPECT_EQ(identity_text(key), kIdentity);
  EXPECT_EQ(recipient_text(x25519_public(key)), kRecipient);
}

TEST(AgeText, EveryChangedLetterOfAKeyIsSeen) {
  for (std::size_t i = 0; i < kRecipient.size(); ++i) {
    for (const char letter : std::string_view("qpzry9x8gf2tvdw0s3jn54khce6mua7lb1A")) {
      std::string changed = kRecipient;
      if (changed[i] == letter) continue;
      changed[i] = letter;
      EXPECT_FALSE(from_bech32("age", changed)) << changed;
    }
  }
  EXPECT_THROW(static_cast<void>(wrap(some_file_key(), {kRecipient.substr(0, 40)}, "")), Error);
  EXPECT_THAT(error_text([] { static_cast<void>(wrap(some_file_key(), {kIdentity}, "")); }),
              testing::Not(HasSubstr(kIdentity.substr(16, 20))));
}

}  // namespace
}  // namespace ballast::seal
