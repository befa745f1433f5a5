// SPDX-License-Identifier: Apache-2.0
#include "base/direct_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/scratch.h"

namespace ballast {
namespace {

constexpr FileOptions kDirect{.io = Io::direct};

std::string random_text(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class DirectFileTest : public Scratch {
 protected:
  // 3 MB and a few bytes, so that it ends inside a block and does not fit into one buffer.
  void SetUp() override {
    write(path("a"), text_);
    try {
      static_cast<void>(File::open(path("a"), kDirect));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unsupported);
      GTEST_SKIP() << error.what();
    }
  }

  const std::string text_ = random_text((std::size_t{3} << 20U) + 123);
};

TEST_F(DirectFileTest, ReadsTheSameBytesAsAPlainReadWhereverTheyBeginAndEnd) {
  const auto file = File::open(path("a"), kDirect);
  EXPECT_EQ(file->io(), Io::direct);
  constexpr std::size_t kBegins[] = {
      0, 1, 511, 4095, 4096, 4097, 1U << 20U, (1U << 20U) - 1, (2U << 20U) + 5};
  for (const std::size_t begin : kBegins) {
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{5}, DirectFile::kSmallest, DirectFile::kSmallest + 1,
          std::size_t{1} << 20U, text_.size() - begin}) {
      const std::size_t count = std::min(length, text_.size() - begin);
      ASSERT_EQ(as_text(file->read(begin, count)), text_.substr(begin, count)) << begin << ' ' << count;
    }
  }
}

TEST_F(DirectFileTest, AFileThatBecameShorterIsAnErrorAndNotZeros) {
  const auto file = File::open(path("a"), kDirect);
  ASSERT_EQ(truncate(path("a").c_str(), 1 << 20), 0);
  const Error error = error_of([&] { static_cast<void>(file->read(1 << 19, 1 << 20)); });
  EXPECT_EQ(error.code(), Errc::file_changed);
  EXPECT_THAT(error.what(), testing::HasSubstr("ends at offset 1048576"));
}

TEST_F(DirectFileTest, WhatTookItsNameSinceIsNotRead) {
  const auto file = File::open(path("a"));
  write(path("b"), std::string(text_.size(), 'b'));
  ASSERT_EQ(rename(path("b").c_str(), path("a").c_str()), 0);
  const File::Descriptor descriptor(*file);
  const DirectFile direct(descriptor.get(), file->path());
  std::vector<std::byte> bytes(100'000);
  ASSERT_EQ(direct.read(0, bytes), bytes.size());
  EXPECT_EQ(as_text(bytes), text_.substr(0, bytes.size()));
}

// Pages of the file that are in the page cache.
std::size_t cached_pages(const std::string& path, std::size_t size) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* map = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  std::vector<unsigned char> there((size + 4095) / 4096);
  EXPECT_EQ(mincore(map, size, there.data()), 0);
  munmap(map, size);
  close(descriptor);
  return static_cast<std::size_t>(
      std::count_if(there.begin(), there.end(), [](unsigned char page) { return (page & 1U) != 0; }));
}

void forget(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(fsync(descriptor), 0);
  EXPECT_EQ(posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
  close(descriptor);
}

TEST_F(DirectFileTest, ItStaysOutOfThePageCache) {
  forget(path("a"));
  if (cached_pages(path("a"), text_.size()) != 0) GTEST_SKIP() << "the page cache does not let go here";
  const auto file = File::open(path("a"), kDirect);
  EXPECT_EQ(as_text(file->read(0, file->size())), text_);
  AtomicFile copy(path("copy"), false);
  copy.copy_at(0, *file, 0, file->size());
  copy.commit();
  // The block that the file ends in may be read through the cache; that is the file system's choice.
  EXPECT_LE(cached_pages(path("a"), text_.size()), 1U);
  EXPECT_EQ(as_text(File::open(path("copy"))->read(0, text_.size())), text_);
  EXPECT_EQ(as_text(File::open(path("a"))->read(0, text_.size())), text_);
  EXPECT_GT(cached_pages(path("a"), text_.size()), 1U);
}

TEST(IoMode, HasFourNames) {
  EXPECT_EQ(io_from_name("auto"), Io::automatic);
  EXPECT_EQ(io_from_name("map"), Io::map);
  EXPECT_EQ(io_from_name("read"), Io::read);
  EXPECT_EQ(io_from_name("direct"), Io::direct);
  EXPECT_THROW(static_cast<void>(io_from_name("mmap")), Error);
}

}  // namespace
}  // namespace ballast
