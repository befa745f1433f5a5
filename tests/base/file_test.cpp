// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using testing::HasSubstr;
using FileTest = Scratch;

TEST_F(FileTest, ReadsWhatIsThereAndNothingElse) {
  write(path("a"), "0123456789");
  const auto file = File::open(path("a"));
  EXPECT_EQ(file->size(), 10U);
  EXPECT_EQ(as_text(file->read(3, 4)), "3456");
  EXPECT_EQ(as_text(file->map()), "0123456789");
  EXPECT_TRUE(file->read(10, 0).empty());
  for (const auto& [offset, length] :
       {std::pair<std::uint64_t, std::uint64_t>{7, 4}, {11, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}}) {
    EXPECT_EQ(error_of([&, offset = offset, length = length] {
                static_cast<void>(file->read(offset, length));
              }).code(),
              Errc::truncated);
  }
  EXPECT_NO_THROW(file->check_unchanged());
}

TEST_F(FileTest, WithoutLinksNoneIsFollowedAnywhereInThePath) {
  namespace fs = std::filesystem;
  const std::string home = fs::canonical(path("")).string();
  fs::create_directories(home + "/real/deep");
  write(home + "/real/deep/a", "inside");
  fs::create_directory_symlink("real", home + "/folder");
  fs::create_symlink("a", home + "/real/deep/link");
  EXPECT_EQ(as_text(File::open(home + "/real/deep/a", {.follow_links = false})->read(0, 6)), "inside");
  for (const char* file : {"/folder/deep/a", "/real/deep/link"}) {
    EXPECT_EQ(as_text(File::open(home + file)->read(0, 6)), "inside");
    EXPECT_EQ(error_of([&] { static_cast<void>(File::open(home + file, {.follow_links = false})); }).code(),
              Errc::path_escape)
        << file;
  }
  EXPECT_EQ(
      error_of([&] { static_cast<void>(File::open(home + "/real/no", {.follow_links = false})); }).code(),
      Errc::file_not_found);
}

TEST_F(FileTest, AnEmptyFileIsAFile) {
  write(path("empty"), "");
  const auto file = File::open(path("empty"));
  EXPECT_EQ(file->size(), 0U);
  EXPECT_TRUE(file->map().empty());
  EXPECT_TRUE(file->read(0, 0).empty());
}

TEST_F(FileTest, RefusesWhatIsNotARegularFileWithoutWaiting) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  Error error = error_of([&] { static_cast<void>(File::open(path("pipe"))); });  // nobody writes to it
  EXPECT_EQ(error.code(), Errc::not_regular_file);
  EXPECT_THAT(error.what(), HasSubstr("is a pipe, a regular file is needed"));
  error = error_of([&] { static_cast<void>(File::open(path(""))); });
  EXPECT_EQ(error.code(), Errc::not_regular_file);
  EXPECT_THAT(error.what(), HasSubstr("is a folder"));
  error = error_of([&] { static_cast<void>(File::open("/dev/null")); });
  EXPECT_THAT(error.what(), HasSubstr("is a device"));
}

TEST_F(FileTest, SaysWhyAFileCannotBeOpened) {
  const Error missing = error_of([&] { static_cast<void>(File::open(path("missing"))); });
  EXPECT_EQ(missing.code(), Errc::file_not_found);
  EXPECT_THAT(missing.what(), HasSubstr("missing: cannot open: No such file or directory"));
  // What the system would silently cut off.
  write(path("a"), "secret");
  EXPECT_EQ(
      error_of([&] { static_cast<void>(File::open(path("a") + std::string("\0.safetensors", 13))); }).code(),
      Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { static_cast<void>(File::open("")); }).code(), Errc::file_not_found);
}

TEST_F(FileTest, AFileThatShrinksWhileOpenIsAnErrorAndNotZeros) {
  write(path("a"), std::string(100, 'x'));
  const auto file = File::open(path("a"));
  ASSERT_EQ(truncate(path("a").c_str(), 40), 0);
  EXPECT_EQ(as_text(file->read(0, 40)), std::string(40, 'x'));
  const Error error = error_of([&] { static_cast<void>(file->read(20, 50)); });
  EXPECT_EQ(error.code(), Errc::file_changed);
  EXPECT_THAT(error.what(), HasSubstr("ends at offset 40, it had 100 bytes when it was opened"));
  EXPECT_EQ(error_of([&] { file->check_unchanged(); }).code(), Errc::file_changed);
}

TEST_F(FileTest, AFileWrittenWhileOpenIsNoticed) {
  write(path("a"), "0123456789");
  const auto file = File::open(path("a"));
  const timespec times[2] = {{1, 0}, {1, 500}};
  ASSERT_EQ(utimensat(AT_FDCWD, path("a").c_str(), times, 0), 0);
  EXPECT_EQ(error_of([&] { file->check_unchanged(); }).code(), Errc::file_changed);
}

TEST_F(FileTest, AReplacedFileStaysTheOldOne) {
  write(path("a"), "old");
  const auto file = File::open(path("a"));
  write(path("b"), "newer");
  std::filesystem::rename(path("b"), path("a"));
  EXPECT_EQ(as_text(file->read(0, 3)), "old");
}

}  // namespace
}  // namespace ballast
