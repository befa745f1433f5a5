// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "base/bytes.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using testing::HasSubstr;

class FileTest : public Scratch {
 protected:
  // A file, and the ways to it that lead over a link.
  std::string home_with_links() {
    namespace fs = std::filesystem;
    std::string home = fs::canonical(path("")).string();
    fs::create_directories(home + "/real/deep");
    write(home + "/real/deep/a", "inside");
    fs::create_directory_symlink("real", home + "/folder");
    fs::create_symlink("a", home + "/real/deep/link");
    fs::create_symlink(home + "/real/deep/a", home + "/real/deep/away");
    return home;
  }
};

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

Errc refusal_without_links(const std::string& file) {
  return error_of([&] { static_cast<void>(File::open(file, {.follow_links = false})); }).code();
}

void expect_no_link_is_followed(const std::string& home) {
  EXPECT_EQ(as_text(File::open(home + "/real/deep/a", {.follow_links = false})->read(0, 6)), "inside");
  for (const char* file : {"/folder/deep/a", "/real/deep/link", "/real/deep/away"}) {
    EXPECT_EQ(as_text(File::open(home + file)->read(0, 6)), "inside") << file;
    EXPECT_EQ(refusal_without_links(home + file), Errc::path_escape) << file;
  }
  for (const char* file :
       {"/real/../real/deep/a", "/real/deep/../deep/a", "/real/./deep/a", "/real//deep/a"}) {
    EXPECT_EQ(as_text(File::open(home + file)->read(0, 6)), "inside") << file;
    EXPECT_EQ(refusal_without_links(home + file), Errc::io_error) << file;
  }
  EXPECT_EQ(refusal_without_links(home + "/real/no"), Errc::file_not_found);
  EXPECT_EQ(refusal_without_links(home + "/real/no/a"), Errc::file_not_found);
  EXPECT_EQ(refusal_without_links(home + "/real/deep"), Errc::not_regular_file);
}

TEST_F(FileTest, WithoutLinksNoneIsFollowedAnywhereInThePath) {
  expect_no_link_is_followed(home_with_links());
}

// From here on the process has a kernel without openat2.
void take_openat2_away() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rules), rules};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  ASSERT_EQ(syscall(SYS_openat2, AT_FDCWD, "/", nullptr, 0), -1);
  ASSERT_EQ(errno, ENOSYS);
}

TEST_F(FileTest, NorWhereTheKernelHasNoOpenat2) {
  const std::string home = home_with_links();
  EXPECT_EXIT(
      {
        take_openat2_away();
        expect_no_link_is_followed(home);
        std::_Exit(HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
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
