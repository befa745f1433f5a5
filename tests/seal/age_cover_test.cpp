// SPDX-License-Identifier: Apache-2.0
#include "seal/age_cover.h"

#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "base/atomic_file.h"
#include "base/scratch.h"
#include "seal/age_files.h"

namespace ballast::seal {
namespace {

class Cover : public Scratch {
 protected:
  [[nodiscard]] std::string plain_of(const std::string& file) const {
    return text_of(*open_age(content(path(file))));
  }

  static CoverScope scope() {
    return CoverScope([] { return age_cover({kRecipient}, ""); });
  }
};

struct Write {
  std::size_t offset;
  std::size_t size;
};

// All of a text in pieces of odd sizes.
std::vector<Write> pieces(std::size_t size, std::size_t largest, std::mt19937& random) {
  std::vector<Write> writes;
  for (std::size_t at = 0; at < size;) {
    const std::size_t count = std::min<std::size_t>(1 + random() % largest, size - at);
    writes.push_back({at, count});
    at += count;
  }
  return writes;
}

// Sizes around the borders of chunks, small and large pieces, in order and shuffled, reserved or not.
TEST_F(Cover, WhateverTheOrderTheTextIsTheSame) {
  std::mt19937 random(7);
  int cases = 0;
  constexpr std::size_t kSizes[] = {0, 1, 65535, 65536, 65537, 131072, 3 * 65536, 5 * 65536 + 9};
  constexpr std::size_t kLargest[] = {5000, 65536, 200000};
  for (const std::size_t size : kSizes) {
    for (const std::size_t largest : kLargest) {
      for (const bool shuffled : {false, true}) {
        for (const bool reserved : {false, true}) {
          const std::string text = some_text(size);
          auto writes = pieces(size, largest, random);
          if (shuffled) std::shuffle(writes.begin(), writes.end(), random);
          {
            const CoverScope covered = scope();
            AtomicFile file(path("x"), true);
            if (reserved) file.reserve(size);
            for (const Write& write : writes)
              file.write_at(write.offset, as_bytes(std::string_view(text).substr(write.offset, write.size)));
            EXPECT_EQ(text_of(*file.written()), text);
            file.commit();
          }
          ASSERT_EQ(plain_of("x"), text) << size << ' ' << largest << ' ' << shuffled << reserved;
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 96);
}

TEST_F(Cover, ThreadsWriteOneFile) {
  const std::string text = some_text(40 * 65536 + 123);
  std::mt19937 random(3);
  auto writes = pieces(text.size(), 90000, random);
  std::shuffle(writes.begin(), writes.end(), random);
  {
    const CoverScope covered = scope();
    AtomicFile file(path("x"), false);
    file.reserve(text.size());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < writes.size(); i += 4)
          file.write_at(writes[i].offset,
                        as_bytes(std::string_view(text).substr(writes[i].offset, writes[i].size)));
      });
    }
    for (std::thread& thread : threads) thread.join();
    file.commit();
  }
  EXPECT_EQ(plain_of("x"), text);
}

// Ends of very many chunks wait at once: they go to the disk, encrypted, and come back.
TEST_F(Cover, MorePartsThanFitIntoMemoryAreSpilledEncrypted) {
  constexpr std::size_t kCount = 2 * AgeCover::kMostWaiting;
  const std::string text(kCount * kChunkBytes, 'P');
  {
    const CoverScope covered = scope();
    AtomicFile file(path("x"), false);
    file.reserve(text.size());
    for (std::size_t i = 0; i < kCount; ++i)
      file.write_at(i * kChunkBytes, as_bytes(std::string_view(text).substr(0, 40000)));
    EXPECT_EQ(text_of(*file.written()).substr(0, 40001), text.substr(0, 40000) + '\0');
    for (const std::string& name : names())
      EXPECT_EQ(content(path(name)).find("PPPPPPPP"), std::string::npos);
    for (std::size_t i = 0; i < kCount; ++i)
      file.write_at(i * kChunkBytes + 40000,
                    as_bytes(std::string_view(text).substr(40000, kChunkBytes - 40000)));
    file.commit();
  }
  EXPECT_EQ(plain_of("x"), text);
}

TEST_F(Cover, WhatNeverCameIsZeros) {
  {
    const CoverScope covered = scope();
    AtomicFile file(path("x"), false);
    file.reserve(200000);
    file.write_at(70000, as_bytes("here"));
    file.commit();
  }
  std::string expected(200000, '\0');
  expected.replace(70000, 4, "here");
  EXPECT_EQ(plain_of("x"), expected);
}

TEST_F(Cover, AByteThatComesTwiceIsRefused) {
  const CoverScope covered = scope();
  AtomicFile file(path("x"), false);
  file.reserve(200000);
  const std::string text = some_text(kChunkBytes);
  file.write_at(0, as_bytes(text));
  EXPECT_EQ(code_of([&] { file.write_at(5, as_bytes("again")); }), Errc::overlap);
}

TEST_F(Cover, FilesMadeOutsideTheScopeAreWrittenAsTheyAre) {
  { const CoverScope covered = scope(); }
  save_text("open", path("x"), false);
  EXPECT_EQ(content(path("x")), "open");
}

TEST_F(Cover, WhatCannotBeEncryptedLeavesNothingBehind) {
  const CoverScope covered([] { return age_cover({"age1nobody"}, ""); });
  EXPECT_EQ(code_of([&] { save_text("secret", path("x"), false); }), Errc::invalid_argument);
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(Cover, TwoFilesOfOneTextHaveNothingInCommon) {
  for (const char* name : {"a", "b"}) {
    const CoverScope covered = scope();
    save_text(some_text(1000), path(name), false);
  }
  const std::string a = content(path("a"));
  const std::string b = content(path("b"));
  EXPECT_EQ(a.size(), b.size());
  EXPECT_NE(a.substr(a.size() - 1000), b.substr(b.size() - 1000));
}

}  // namespace
}  // namespace ballast::seal
