// SPDX-License-Identifier: Apache-2.0
#include "seal/age_source.h"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "base/scratch.h"
#include "seal/age_files.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 65535, 65536, 65537, 3 * 65536, 3 * 65536 + 1};

class Age : public Scratch {
 protected:
  static bool has_age() { return std::system("age --version >/dev/null 2>&1") == 0; }

  // Runs age in the test's folder.
  void run(const std::string& command) const {
    ASSERT_EQ(std::system(fmt::format("cd '{}' && {}", path("."), command).c_str()), 0) << command;
  }
};

TEST_F(Age, WhatAgeEncryptsIsRead) {
  if (!has_age()) GTEST_SKIP() << "no age";
  for (const std::size_t size : kSizes) {
    write(path("plain"), some_text(size));
    run("age -r " + kRecipient + " -o sealed plain");
    EXPECT_EQ(text_of(*open_age(content(path("sealed")))), some_text(size)) << size;
    std::filesystem::remove(path("sealed"));
  }
}

TEST_F(Age, WhatIsPutTogetherByTheSpecificationIsReadByAge) {
  if (!has_age()) GTEST_SKIP() << "no age";
  write(path("key"), kIdentity + "\n");
  for (const std::size_t size : kSizes) {
    write(path("sealed"), age_file(some_text(size)));
    run("age -d -i key -o plain sealed");
    EXPECT_EQ(content(path("plain")), some_text(size)) << size;
  }
}

TEST_F(Age, EachOfTwoRecipientsReadsIt) {
  const std::string file = age_file("weights", {kRecipient, kOtherRecipient});
  EXPECT_EQ(text_of(*open_age(file, {{kIdentity}, ""})), "weights");
  EXPECT_EQ(text_of(*open_age(file, {{kOtherIdentity}, ""})), "weights");
  EXPECT_EQ(text_of(*open_age(file, {{kOtherIdentity, kIdentity}, ""})), "weights");
}

TEST_F(Age, IdentitiesAreFilesWithCommentsOrTexts) {
  write(path("key"), "# created: today\r\n# public key: " + kRecipient + "\r\n\n" + kIdentity + "\r\n");
  EXPECT_EQ(text_of(*open_age(age_file("w"), {{path("key")}, ""})), "w");
  EXPECT_EQ(text_of(*open_age(age_file("w"), {{"# mine\n" + kIdentity + "\n"}, ""})), "w");
  write(path("empty"), "# nothing\n");
  EXPECT_EQ(code_of([&] { open_age(age_file("w"), {{path("empty")}, ""}); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { open_age(age_file("w"), {{path("none")}, ""}); }), Errc::file_not_found);
  write(path("torn"), kIdentity.substr(0, 50) + "\n");
  const std::string said = error_text([&] { open_age(age_file("w"), {{path("torn")}, ""}); });
  EXPECT_THAT(said, testing::HasSubstr("line 1 is no identity of age"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr(kIdentity.substr(20, 20))));
}

TEST_F(Age, WithoutTheRightKeyItSaysWhatToGive) {
  const std::string file = age_file("w");
  EXPECT_EQ(error_text([&] { open_age(file, {}); }),
            "cannot-decrypt: model.pt.age: is encrypted with age: give an identity (--identity FILE, "
            "BALLAST_IDENTITY, "
            "identities) to open it");
  EXPECT_EQ(error_text([&] {
              open_age(file, {{kOtherIdentity}, ""});
            }),
            "cannot-decrypt: model.pt.age: is encrypted with age for 1 recipient, and none is of the 1 "
            "identity given");
  EXPECT_EQ(code_of([&] { open_age(age_file("w", {Stanza{{"ssh-ed25519", "x"}, {}}})); }), Errc::unsupported);
}

TEST_F(Age, PassphrasesOpenWhatTheyClosed) {
  write(path("phrase"), "correct horse\n");
  write(path("wrong"), "battery staple\n");
  write(path("empty"), "\n");
  const std::string file = age_file("weights", wrap(some_file_key(), {}, path("phrase")));
  EXPECT_EQ(text_of(*open_age(file, {{}, path("phrase")})), "weights");
  EXPECT_EQ(text_of(*open_age(file, {{kIdentity}, path("phrase")})), "weights");
  EXPECT_EQ(code_of([&] { open_age(file, {{}, path("wrong")}); }), Errc::cannot_decrypt);
  EXPECT_EQ(code_of([&] { open_age(file, {{}, path("empty")}); }), Errc::invalid_argument);
  EXPECT_THAT(error_text([&] { open_age(file); }),
              testing::HasSubstr("give a passphrase (--passphrase-file"));
}

// age asks for passphrases at a terminal; script(1) is one.
TEST_F(Age, PassphrasesAreAgesOwn) {
  if (!has_age() || std::system("script --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no age, or no terminal";
  write(path("plain"), some_text(70000));
  write(path("phrase"), "correct horse\n");
  run("(sleep 1; printf 'correct horse\\n'; sleep 1; printf 'correct horse\\n'; sleep 3) | "
      "script -qec 'age -p -o sealed plain' /dev/null >/dev/null");
  EXPECT_EQ(text_of(*open_age(content(path("sealed")), {{}, path("phrase")})), some_text(70000));
  write(path("ours"), age_file(some_text(70000), wrap(some_file_key(), {}, path("phrase"))));
  run("(sleep 1; printf 'correct horse\\n'; sleep 3) | script -qec 'age -d -o back ours' /dev/null "
      ">/dev/null");
  EXPECT_EQ(content(path("back")), some_text(70000));
}

// More than ten thousand of them.
TEST_F(Age, EverySingleFlippedBitIsRefused) {
  const std::string file = age_file(some_text(1000), {kRecipient, kOtherRecipient});
  ASSERT_GT(file.size() * 8, 10'000U);
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string changed = file;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    try {
      const std::string text = text_of(*open_age(changed));
      ADD_FAILURE() << "bit " << bit << " of " << file.size() * 8 << " was not seen";
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_EQ(refused, file.size() * 8);
}

TEST_F(Age, EveryTruncationAndEveryAdditionIsRefused) {
  const std::string file = age_file(some_text(300));
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_THROW(static_cast<void>(open_age(file.substr(0, size))), Error) << size;
  for (std::size_t more = 1; more < 40; ++more)
    EXPECT_THROW(static_cast<void>(open_age(file + std::string(more, 'x'))), Error) << more;
}

// What a chunk's border hides is seen at once: the last chunk is opened first.
TEST_F(Age, TruncationAtTheBordersOfChunksIsSeenWhenItIsOpened) {
  const std::string file = age_file(some_text(3 * 65536 + 5));
  const std::size_t header = read_header(*source_of(file)).size;
  for (std::size_t chunks = 0; chunks <= 3; ++chunks) {
    for (const int beside : {-17, -16, -1, 0, 1, 15, 16, 17, 20}) {
      const auto size = static_cast<std::size_t>(
          static_cast<int>(header + kPayloadNonceBytes + chunks * kSealedChunkBytes) + beside);
      EXPECT_THROW(static_cast<void>(open_age(file.substr(0, size))), Error) << size;
    }
  }
}

TEST_F(Age, ChunksThatWereSwappedOrRepeatedAreRefused) {
  const std::string file = age_file(some_text(4 * 65536));
  const std::size_t first = read_header(*source_of(file)).size + kPayloadNonceBytes;
  const auto chunk = [&](std::size_t i) {
    return file.substr(first + i * kSealedChunkBytes, kSealedChunkBytes);
  };
  const std::string head = file.substr(0, first);
  const auto source = open_age(head + chunk(1) + chunk(0) + chunk(2) + chunk(3));
  EXPECT_EQ(code_of([&] { static_cast<void>(source->read(0, 10)); }), Errc::bad_tag);
  EXPECT_EQ(source->read(2 * 65536, 10).size(), 10U);
  EXPECT_EQ(code_of([&] { open_age(head + chunk(0) + chunk(1) + chunk(2)); }), Errc::bad_tag);
  EXPECT_EQ(code_of([&] { open_age(file + chunk(3)); }), Errc::bad_tag);
}

// The specification has one way to end a text: an empty chunk ends nothing but an empty one.
TEST_F(Age, AnEmptyLastChunkBehindOthersIsRefused) {
  const FileKey key = some_file_key();
  const std::string nonce = some_text(kPayloadNonceBytes);
  Aead aead(hkdf(key.bytes(), as_bytes(nonce), "payload"));
  std::string first(kSealedChunkBytes, '\0');
  std::string last(kTagBytes, '\0');
  aead.seal(chunk_nonce(0, false), as_bytes(some_text(kChunkBytes)),
            std::as_writable_bytes(std::span(first)));
  aead.seal(chunk_nonce(1, true), {}, std::as_writable_bytes(std::span(last)));
  const std::string file = write_header(wrap(key, {kRecipient}, ""), key) + nonce + first + last;
  EXPECT_EQ(code_of([&] { static_cast<void>(open_age(file)); }), Errc::bad_tag);
}

TEST_F(Age, APieceReadsItsChunksAndNoOthers) {
  constexpr std::size_t kCount = 50;
  const auto counting = source_of(age_file(some_text(kCount * kChunkBytes)));
  const auto source = AgeSource::open(counting, {{kIdentity}, ""});
  EXPECT_EQ(source->opened_chunks(), 1U);  // the last
  const std::uint64_t head = counting->bytes_read();
  EXPECT_LT(head, 5000 + kSealedChunkBytes);
  const auto read_costs = [&](std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t before = source->opened_chunks();
    const std::uint64_t bytes = counting->bytes_read();
    EXPECT_EQ(as_text(source->read(offset, length)), some_text(kCount * kChunkBytes).substr(offset, length));
    const std::uint64_t opened = source->opened_chunks() - before;
    EXPECT_EQ(counting->bytes_read() - bytes, opened * kSealedChunkBytes);
    return opened;
  };
  EXPECT_EQ(read_costs(7 * kChunkBytes + 5, 100), 1U);
  EXPECT_EQ(read_costs(7 * kChunkBytes + 500, 100), 0U);  // small steps decrypt a chunk once
  EXPECT_EQ(read_costs(20 * kChunkBytes - 1, 2), 2U);
  EXPECT_EQ(read_costs(30 * kChunkBytes, 3 * kChunkBytes), 3U);
  EXPECT_EQ(read_costs((kCount - 1) * kChunkBytes + 3, 9), 0U);  // the last again
}

TEST_F(Age, ThreadsReadOneSource) {
  const std::string plain = some_text(20 * kChunkBytes + 17);
  const auto source = open_age(age_file(plain));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 200; ++i) {
        const std::size_t at = (i * 7919 + t * 104729) % (plain.size() - 1000);
        EXPECT_EQ(as_text(source->read(at, 1000)), plain.substr(at, 1000));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Age, TheNameInsideIsTheNameWithoutItsEnding) {
  EXPECT_EQ(open_age(age_file(""))->name(), "model.pt");
  EXPECT_EQ(open_age(age_file(""))->where(), "model.pt.age");
  EXPECT_EQ(inner_name("x.safetensors"), "x.safetensors");
}

}  // namespace
}  // namespace ballast::seal
