// SPDX-License-Identifier: Apache-2.0
// The kinds of files that age's published test vectors (C2SP CCTV, "age") hold, as far as they are about
// X25519, scrypt, headers and payloads, put together here from the specification: 86, each under the name of
// its kind, with what a reader must say of it. Where age itself is installed, it must agree.
#include <gmock/gmock.h>

#include "base/scratch.h"
#include "seal/age_files.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

enum class Verdict : std::uint8_t { opens, bad_header, bad_mac, no_match, bad_payload, too_much };

struct Vector {
  std::string name;
  Verdict verdict;
  std::string file;
  std::string plain = "age";
  bool is_scrypt = false;
};

constexpr std::string_view kPhrase = "password";
using C =
    std::vector<std::pair<std::string, bool>>;  // chunks: the text, and whether it is sealed as the last

std::string sealed_chunks(const C& chunks) {
  const std::string nonce = some_text(kPayloadNonceBytes);
  Aead aead(hkdf(some_file_key().bytes(), as_bytes(nonce), "payload"));
  std::string out = nonce;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    std::string sealed(chunks[i].first.size() + kTagBytes, '\0');
    aead.seal(chunk_nonce(i, chunks[i].second), as_bytes(chunks[i].first),
              std::as_writable_bytes(std::span(sealed)));
    out += sealed;
  }
  return out;
}

std::string mac_of(const std::string& text) {
  return base64(hmac_sha256(hkdf(some_file_key().bytes(), {}, "header"), text));
}

// Lines of stanzas, the right MAC, and a payload.
std::string closed(const std::string& lines, const std::string& payload = sealed_chunks({{"age", true}}),
                   std::string_view version = kVersionLine) {
  const std::string text = std::string(version) + lines + "---";
  return text + ' ' + mac_of(text) + '\n' + payload;
}

std::string body_lines(const std::string& letters) {
  std::string lines;
  for (std::size_t at = 0; at <= letters.size(); at += 64) lines += letters.substr(at, 64) + '\n';
  return lines;
}

std::string lines_of(const std::vector<Stanza>& stanzas) {
  std::string lines;
  for (const Stanza& stanza : stanzas)
    lines += fmt::format("-> {}\n{}", fmt::join(stanza.arguments, " "), body_lines(base64(stanza.body)));
  return lines;
}

// A bit that means nothing, set: the same bytes in letters nobody writes.
std::string not_canonical(std::string letters) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  letters.back() = kLetters[kLetters.find(letters.back()) | 1U];
  return letters;
}

struct X25519Parts {
  std::string share;
  std::string body;

  X25519Parts() {
    const Stanza stanza = wrap(some_file_key(), {kRecipient}, "").front();
    share = stanza.arguments[1];
    body = base64(stanza.body);
  }
};

std::string x25519(const std::string& arguments, const std::string& body) {
  return closed("-> X25519 " + arguments + '\n' + body_lines(body));
}

std::vector<Vector> x25519_vectors() {
  const X25519Parts good;
  const std::string ok = lines_of(wrap(some_file_key(), {kRecipient}, ""));
  const std::string other = lines_of(wrap(some_file_key(), {kOtherRecipient}, ""));
  std::string bad_tag = good.body;
  bad_tag[5] = bad_tag[5] == 'A' ? 'B' : 'A';
  const std::string long_body = base64(as_bytes(some_text(kTagBytes + 24)));
  const std::string zeros = base64(std::vector<std::byte>(32));
  return {
      {"x25519", Verdict::opens, closed(ok)},
      {"x25519_bad_tag", Verdict::no_match, x25519(good.share, bad_tag)},
      {"x25519_extra_argument", Verdict::bad_header, x25519(good.share + " 1234", good.body)},
      {"x25519_grease", Verdict::opens,
       closed("-> grease\n\n" + ok + "-> X-grease 1 2\n" + std::string(64, 'A') + "\n\n")},
      {"x25519_identity", Verdict::bad_header, x25519(zeros, good.body)},
      {"x25519_lowercase", Verdict::no_match,
       closed("-> x25519 " + good.share + '\n' + body_lines(good.body))},
      {"x25519_low_order", Verdict::bad_header,
       x25519("X5yVvKNQjCSx0LFVnIPvWwREXMRYHI6G2CJO3dCfEVc", good.body)},
      {"x25519_long_file_key", Verdict::bad_header, x25519(good.share, long_body)},
      {"x25519_long_share", Verdict::bad_header,
       x25519(base64(as_bytes(std::string("\0", 1) + std::string(as_text(*from_base64(good.share))))),
              good.body)},
      {"x25519_multiple_recipients", Verdict::opens, closed(other + ok + other)},
      {"x25519_no_match", Verdict::no_match, closed(other)},
      {"x25519_not_canonical_body", Verdict::bad_header, x25519(good.share, not_canonical(good.body))},
      {"x25519_not_canonical_share", Verdict::bad_header, x25519(not_canonical(good.share), good.body)},
      {"x25519_short_share", Verdict::bad_header,
       x25519(base64(as_bytes(as_text(*from_base64(good.share)).substr(1))), good.body)},
  };
}

// With a work factor that costs nothing, as the vectors have it.
std::string scrypt_stanza(const std::string& salt_text, const std::string& factor, unsigned log_n,
                          std::string_view phrase = kPhrase, const std::string& kind = "scrypt") {
  const std::string salt = "age-encryption.org/v1/scrypt" + some_text(16);
  std::string body(16 + kTagBytes, '\0');
  Aead(scrypt(as_bytes(phrase), as_bytes(salt), log_n))
      .seal(Nonce{}, some_file_key().bytes(), std::as_writable_bytes(std::span(body)));
  return "-> " + kind + (salt_text.empty() ? "" : " " + salt_text) + (factor.empty() ? "" : " " + factor) +
         '\n' + body_lines(base64(as_bytes(body)));
}

std::vector<Vector> scrypt_vectors() {
  const std::string salt = base64(as_bytes(some_text(16)));
  const std::string good = scrypt_stanza(salt, "10", 10);
  const std::string key = lines_of(wrap(some_file_key(), {kRecipient}, ""));
  std::string bad_tag = good;
  bad_tag[bad_tag.size() - 9] = bad_tag[bad_tag.size() - 9] == 'A' ? 'B' : 'A';
  const std::string long_key = "-> scrypt " + salt + " 10\n" + body_lines(base64(as_bytes(some_text(40))));
  const std::string first = good.substr(0, good.find('\n') + 1);
  const std::string body = good.substr(first.size(), 43);
  const auto factor = [&](const char* name, const std::string& text) {
    return Vector{fmt::format("scrypt_work_factor_{}", name), Verdict::bad_header,
                  closed(scrypt_stanza(salt, text, 10))};
  };
  std::vector<Vector> vectors = {
      {"scrypt", Verdict::opens, closed(good)},
      {"scrypt_and_x25519", Verdict::bad_header, closed(good + key)},
      {"scrypt_bad_tag", Verdict::no_match, closed(bad_tag)},
      {"scrypt_double", Verdict::bad_header, closed(good + good)},
      {"scrypt_extra_argument", Verdict::bad_header, closed(scrypt_stanza(salt, "10 1234", 10))},
      {"scrypt_long_file_key", Verdict::bad_header, closed(long_key)},
      {"scrypt_no_match", Verdict::no_match, closed(scrypt_stanza(salt, "10", 10, "hunter2"))},
      {"scrypt_not_canonical_body", Verdict::bad_header, closed(first + not_canonical(body) + '\n')},
      {"scrypt_not_canonical_salt", Verdict::bad_header,
       closed(scrypt_stanza(not_canonical(salt), "10", 10))},
      {"scrypt_salt_long", Verdict::bad_header,
       closed(scrypt_stanza(base64(as_bytes(some_text(17))), "10", 10))},
      {"scrypt_salt_missing", Verdict::bad_header, closed(scrypt_stanza("", "10", 10))},
      {"scrypt_salt_short", Verdict::bad_header,
       closed(scrypt_stanza(base64(as_bytes(some_text(15))), "10", 10))},
      {"scrypt_uppercase", Verdict::no_match, closed(scrypt_stanza(salt, "10", 10, kPhrase, "SCRYPT"))},
      {"scrypt_work_factor_23", Verdict::too_much, closed(scrypt_stanza(salt, "23", 10))},
      factor("hex", "0xa"),
      factor("leading_garbage", "aaaa10"),
      factor("leading_plus", "+10"),
      factor("leading_space", " 10"),
      factor("leading_zero_decimal", "010"),
      factor("leading_zero_octal", "012"),
      factor("missing", ""),
      factor("negative", "-10"),
      {"scrypt_work_factor_overflow", Verdict::too_much,
       closed(scrypt_stanza(salt, "18446744073709551626", 10))},
      factor("trailing_garbage", "10aaaa"),
      factor("trailing_space", "10 "),
      {"scrypt_work_factor_wrong", Verdict::no_match, closed(scrypt_stanza(salt, "9", 10))},
      factor("zero", "0"),
  };
  for (Vector& vector : vectors) vector.is_scrypt = true;
  return vectors;
}

std::vector<Vector> header_vectors() {
  const std::string ok = lines_of(wrap(some_file_key(), {kRecipient}, ""));
  const std::string payload = sealed_chunks({{"age", true}});
  const std::string text = std::string(kVersionLine) + ok + "---";
  const std::string mac = mac_of(text);
  std::string wrong = mac;
  wrong[3] = wrong[3] == 'A' ? 'B' : 'A';
  std::string crlf = std::string(kVersionLine) + ok + "--- " + mac + '\n';
  for (std::size_t at = 0; (at = crlf.find('\n', at)) != std::string::npos; at += 2) crlf.insert(at, 1, '\r');
  const auto end = [&](const std::string& line) { return text + line + payload; };
  const auto stanza = [&](const char* name, const std::string& lines) {
    return Vector{fmt::format("stanza_{}", name), Verdict::bad_header, closed(lines + ok)};
  };
  const std::string full(64, 'A');
  return {
      {"header_crlf", Verdict::bad_header, crlf + payload},
      {"hmac_bad", Verdict::bad_mac, end(" " + wrong + '\n')},
      {"hmac_extra_space", Verdict::bad_header, end("  " + mac + '\n')},
      {"hmac_garbage", Verdict::bad_header, end(" " + mac + "AAA\n")},
      {"hmac_missing", Verdict::bad_header, end("\n")},
      {"hmac_no_space", Verdict::bad_header, end(mac + '\n')},
      {"hmac_not_canonical", Verdict::bad_header, end(" " + not_canonical(mac) + '\n')},
      {"hmac_trailing_space", Verdict::bad_header, end(" " + mac + " \n")},
      {"hmac_truncated", Verdict::bad_header, end(" " + mac.substr(0, 40) + '\n')},
      stanza("bad_start", "-- stanza\n\n"),
      stanza("base64_padding", "-> stanza\nQUFBQQ==\n"),
      stanza("empty_argument", "-> stanza  argument\n\n"),
      {"stanza_empty_body", Verdict::opens, closed("-> stanza\n\n" + ok)},
      {"stanza_empty_last_line", Verdict::opens, closed("-> stanza\n" + full + "\n\n" + ok)},
      stanza("invalid_character", "-> stanza \xc3\xa9\n\n"),
      stanza("long_line", "-> stanza\n" + full + "AAAA\n"),
      stanza("missing_body", "-> stanza\n"),
      stanza("missing_final_line", "-> stanza\n" + full + "\n"),
      stanza("multiple_short_lines", "-> stanza\nAAAA\nAAAA\n"),
      stanza("no_arguments", "->\n\n"),
      stanza("not_canonical", "-> stanza\nAAB\n"),
      stanza("spurious_cr", "-> stanza\nAAAA\r\n"),
      {"stanza_valid_characters", Verdict::opens,
       closed("-> stanza !\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~\n\n" + ok)},
      {"version_unsupported", Verdict::bad_header,
       closed(ok, sealed_chunks({{"age", true}}), "age-encryption.org/v1234\n")},
  };
}

std::vector<Vector> stream_vectors() {
  const std::string ok = lines_of(wrap(some_file_key(), {kRecipient}, ""));
  const std::string full = some_text(kChunkBytes);
  const auto made = [&](const char* name, Verdict verdict, const C& chunks, std::string plain = "",
                        const std::string& behind = "", std::size_t cut = 0) {
    std::string payload = sealed_chunks(chunks);
    payload.resize(payload.size() - cut);
    return Vector{fmt::format("stream_{}", name), verdict, closed(ok, payload + behind), std::move(plain)};
  };
  const auto flipped = [&](const char* name, const C& chunks, std::size_t from_end) {
    Vector vector = made(name, Verdict::bad_payload, chunks);
    vector.file[vector.file.size() - from_end] ^= 1;
    return vector;
  };
  constexpr Verdict kBad = Verdict::bad_payload;
  return {
      flipped("bad_tag", {{"age", true}}, 1),
      flipped("bad_tag_second_chunk", {{full, false}, {"age", true}}, 1),
      flipped("bad_tag_second_chunk_full", {{full, false}, {full, true}}, 1),
      made("empty_payload", Verdict::opens, {{"", true}}, ""),
      made("last_chunk_empty", kBad, {{full, false}, {"", true}}),
      made("last_chunk_full", Verdict::opens, {{full, true}}, full),
      made("last_chunk_full_second", Verdict::opens, {{full, false}, {full, true}}, full + full),
      made("missing_tag", kBad, {{"age", true}}, "", "", kTagBytes),
      made("no_chunks", kBad, {}),
      made("no_final", kBad, {{"age", false}}),
      made("no_final_full", kBad, {{full, false}}),
      made("no_final_two_chunks", kBad, {{full, false}, {"age", false}}),
      made("no_final_two_chunks_full", kBad, {{full, false}, {full, false}}),
      Vector{"stream_no_nonce", kBad, closed(ok, "")},
      made("short_chunk", kBad, {{full.substr(1), false}, {"age", true}}),
      Vector{"stream_short_nonce", kBad, closed(ok, some_text(12))},
      made("short_second_chunk", kBad, {{full, false}, {full.substr(1), false}, {"age", true}}),
      made("three_chunks", Verdict::opens, {{full, false}, {full, false}, {"age", true}},
           full + full + "age"),
      made("trailing_garbage_long", kBad, {{full, true}}, "", some_text(kChunkBytes)),
      made("trailing_garbage_short", kBad, {{full, true}}, "", some_text(12)),
      made("two_chunks", Verdict::opens, {{full, false}, {"age", true}}, full + "age"),
  };
}

std::vector<Vector> all_vectors() {
  std::vector<Vector> all;
  for (std::vector<Vector> some : {x25519_vectors(), scrypt_vectors(), header_vectors(), stream_vectors()})
    for (Vector& vector : some) all.push_back(std::move(vector));
  return all;
}

class AgeVectors : public Scratch {
 protected:
  // What reading all of it ends in.
  Verdict verdict_of(const Vector& vector, std::string& plain) {
    write(path("phrase"), std::string(kPhrase) + "\n");
    const GivenKeys keys = vector.is_scrypt ? GivenKeys{{}, path("phrase")} : GivenKeys{{kIdentity}, ""};
    try {
      plain = text_of(*open_age(vector.file, keys));
      return Verdict::opens;
    } catch (const Error& error) {
      const bool is_mac = std::string_view(error.what()).find("header") != std::string_view::npos;
      switch (error.code()) {
        case Errc::cannot_decrypt:
          return Verdict::no_match;
        case Errc::expansion_limit:
          return Verdict::too_much;
        case Errc::bad_tag:
          return is_mac ? Verdict::bad_mac : Verdict::bad_payload;
        case Errc::truncated:
          return Verdict::bad_payload;
        case Errc::unsupported:
          // Nothing in it is of a kind we know: nobody's key matches.
          return vector.verdict == Verdict::no_match ? Verdict::no_match : Verdict::bad_header;
        default:
          return Verdict::bad_header;
      }
    }
  }
};

TEST_F(AgeVectors, EveryKindIsJudgedAsPublished) {
  const std::vector<Vector> all = all_vectors();
  EXPECT_EQ(all.size(), 86U);
  for (const Vector& vector : all) {
    std::string plain;
    const Verdict verdict = verdict_of(vector, plain);
    EXPECT_EQ(static_cast<int>(verdict), static_cast<int>(vector.verdict)) << vector.name;
    if (vector.verdict == Verdict::opens) {
      EXPECT_EQ(plain, vector.plain) << vector.name;
    }
  }
}

// Passphrases are asked for at a terminal, so that those are not among them.
TEST_F(AgeVectors, AgeAgrees) {
  if (std::system("age --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no age";
  write(path("key"), kIdentity + "\n");
  std::size_t asked = 0;
  for (const Vector& vector : all_vectors()) {
    if (vector.is_scrypt) continue;
    write(path("sealed"), vector.file);
    const std::string command =
        fmt::format("cd '{}' && age -d -i key sealed >plain 2>/dev/null </dev/null", path("."));
    EXPECT_EQ(std::system(command.c_str()) == 0, vector.verdict == Verdict::opens) << vector.name;
    if (vector.verdict == Verdict::opens) {
      EXPECT_EQ(content(path("plain")), vector.plain) << vector.name;
    }
    ++asked;
  }
  EXPECT_EQ(asked, 59U);
}

}  // namespace
}  // namespace ballast::seal
