// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AtomicFileTest : public Scratch {
 protected:
  static void save(const std::string& path, std::string_view text, bool overwrite) {
    AtomicFile file(path, overwrite);
    file.append(text);
    file.commit();
  }

  static unsigned mode(const std::string& path) {
    struct stat status {};

    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 07777U;
  }
};

TEST_F(AtomicFileTest, TheNameAppearsWithAllItsBytes) {
  {
    AtomicFile file(path("a"), false);
    file.append("one ");
    file.append("two");
    EXPECT_EQ(file.position(), 7U);
    file.write_at(4, as_bytes("TWO"));
    EXPECT_FALSE(std::filesystem::exists(path("a")));
    EXPECT_EQ(names().size(), 1U);
    file.commit();
  }
  EXPECT_EQ(content(path("a")), "one TWO");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, WithoutCommitNothingIsLeft) {
  write(path("a"), "old");
  {
    AtomicFile file(path("a"), true);
    file.append("new");
  }
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, ANewFilesModeIsTheUmasks) {
  for (const mode_t mask : {022U, 077U, 002U}) {
    const mode_t before = umask(mask);
    save(path("a"), "x", true);
    umask(before);
    EXPECT_EQ(mode(path("a")), 0666U & ~mask);
    std::filesystem::remove(path("a"));
  }
}

TEST_F(AtomicFileTest, AnOldFilesModeIsKept) {
  for (const mode_t kept : {0600U, 0640U, 0444U, 0666U, 0755U}) {
    write(path("a"), "old");
    ASSERT_EQ(chmod(path("a").c_str(), kept), 0);
    save(path("a"), "new", true);
    EXPECT_EQ(mode(path("a")), kept);
    EXPECT_EQ(content(path("a")), "new");
    std::filesystem::remove(path("a"));
  }
  // But no right to act as somebody else: the contents are not those it was given for.
  write(path("a"), "old");
  ASSERT_EQ(chmod(path("a").c_str(), 06755), 0);
  save(path("a"), "new", true);
  EXPECT_EQ(mode(path("a")), 0755U);
}

TEST_F(AtomicFileTest, APrivateFileIsNeverLaidOpenWhileItIsReplaced) {
  write(path("a"), "old");
  ASSERT_EQ(chmod(path("a").c_str(), 0600), 0);
  AtomicFile file(path("a"), true);
  for (const std::string& entry : names()) EXPECT_EQ(mode(path(entry)), 0600U);
}

TEST_F(AtomicFileTest, SymbolicLinksAreWrittenThrough) {
  std::filesystem::create_directory(path("folder"));
  write(path("folder/real"), "old");
  std::filesystem::create_symlink("folder/real", path("link"));
  std::filesystem::create_symlink("link", path("link2"));
  save(path("link2"), "new", true);
  EXPECT_EQ(content(path("folder/real")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")) && std::filesystem::is_symlink(path("link2")));
  // A link to nothing yet: the file is made where it points.
  std::filesystem::create_symlink("folder/fresh", path("dangling"));
  save(path("dangling"), "made", false);
  EXPECT_EQ(content(path("folder/fresh")), "made");
  std::filesystem::create_symlink("round", path("round"));
  EXPECT_THAT(error_of([&] { save(path("round"), "x", true); }).what(), HasSubstr("too many symbolic links"));
}

TEST_F(AtomicFileTest, AFileCanBeWrittenFromItself) {
  write(path("a"), std::string(300'000, 'a') + "tail");
  const auto source = File::open(path("a"));
  AtomicFile file(path("a"), true);
  file.append("head");
  file.copy_at(4, *source, 0, source->size());
  file.commit();
  EXPECT_EQ(content(path("a")), "head" + std::string(300'000, 'a') + "tail");
}

TEST_F(AtomicFileTest, CopiesAcrossFileSystems) {
  const auto source = File::open("/proc/self/exe");  // whatever holds it, it is not the test's folder alone
  AtomicFile file(path("a"), false);
  const std::uint64_t length = std::min<std::uint64_t>(source->size(), 700'001);
  file.copy_at(3, *source, 1, length - 1);
  file.write_at(0, as_bytes("abc"));
  file.commit();
  EXPECT_EQ(content(path("a")).substr(3), as_text(source->read(1, length - 1)));
  AtomicFile other(path("b"), false);
  EXPECT_EQ(error_of([&] { other.copy_at(0, *source, source->size(), 1); }).code(), Errc::truncated);
}

TEST_F(AtomicFileTest, AShrunkSourceIsAnErrorOfTheCopy) {
  write(path("source"), std::string(1000, 's'));
  const auto source = File::open(path("source"));
  ASSERT_EQ(truncate(path("source").c_str(), 10), 0);
  AtomicFile file(path("a"), false);
  EXPECT_EQ(error_of([&] { file.copy_at(0, *source, 0, 1000); }).code(), Errc::file_changed);
}

TEST_F(AtomicFileTest, AnExistingFileIsNotOverwrittenUnasked) {
  write(path("a"), "old");
  const Error error = error_of([&] { AtomicFile(path("a"), false); });
  EXPECT_EQ(error.code(), Errc::already_exists);
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, AFileThatAppearedMeanwhileIsNotOverwrittenEither) {
  AtomicFile file(path("a"), false);
  file.append("mine");
  write(path("a"), "theirs");
  EXPECT_EQ(error_of([&] { file.commit(); }).code(), Errc::already_exists);
  EXPECT_EQ(content(path("a")), "theirs");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, OfManyWritersWithoutOverwriteOneWins) {
  constexpr int kWriters = 8;
  std::atomic<int> won = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      try {
        save(path("a"), "writer " + std::to_string(i), false);
        ++won;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::already_exists);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(won, 1);
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, NamesThatCannotBeFilesAreRefused) {
  EXPECT_EQ(error_of([] { AtomicFile("", true); }).code(), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { AtomicFile(path("a") + std::string("\0b", 2), true); }).code(),
            Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { AtomicFile(path(""), true); }).code(), Errc::not_regular_file);
  EXPECT_EQ(error_of([&] { AtomicFile("/dev/null", true); }).code(), Errc::not_regular_file);
  EXPECT_EQ(error_of([&] { AtomicFile(path("no/such/folder"), true); }).code(), Errc::file_not_found);
  save(path(std::string(255, 'n')), "long names are fine", false);
  EXPECT_THAT(names(), ElementsAre(std::string(255, 'n')));
}

TEST_F(AtomicFileTest, NothingCanBeCommittedTwice) {
  AtomicFile file(path("a"), true);
  file.commit();
  EXPECT_EQ(error_of([&] { file.commit(); }).code(), Errc::invalid_argument);
  EXPECT_TRUE(std::filesystem::exists(path("a")));
}

TEST_F(AtomicFileTest, ReserveGivesTheSizeAtOnce) {
  AtomicFile file(path("a"), true);
  file.reserve(100'000);
  file.write_at(99'999, as_bytes("z"));
  file.commit();
  EXPECT_EQ(std::filesystem::file_size(path("a")), 100'000U);
  AtomicFile huge(path("b"), true);
  EXPECT_EQ(error_of([&] { huge.reserve(UINT64_MAX); }).code(), Errc::size_overflow);
}

// In a process of its own, in which no file may grow beyond 100,000 bytes: a write is cut short there, and
// the next one refused.
TEST_F(AtomicFileTest, AFullDiskIsAnErrorThatLeavesTheOldFileAndNothingElse) {
  write(path("a"), "old");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int result = 0;
    try {
      AtomicFile file(path("a"), true);
      file.append(std::string(60'000, 'x'));
      file.append(std::string(60'000, 'x'));
      result = 1;
    } catch (const Error& error) {
      result = error.code() == Errc::no_space ? 0 : 2;
    }
    try {
      AtomicFile(path("a"), true).reserve(200'000);
      result = 3;
    } catch (const Error& error) {
      if (error.code() != Errc::no_space) result = 4;
    }
    std::_Exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_THAT(names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, LargeWritesFromSeveralThreadsAllArrive) {
  const std::string block(1U << 20U, 'b');
  AtomicFile file(path("a"), false);
  std::vector<std::thread> writers;
  for (std::uint64_t i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] { file.write_at(i * block.size(), as_bytes(block)); });
  }
  for (std::thread& writer : writers) writer.join();
  file.commit();
  EXPECT_EQ(content(path("a")), block + block + block + block);
}

TEST_F(AtomicFileTest, ASignalHandlerCanRemoveWhatIsUnfinished) {
  save(path("finished"), "stays", false);
  AtomicFile file(path("a"), true);
  file.append("x");
  EXPECT_EQ(names().size(), 2U);
  discard_unfinished_files();
  EXPECT_THAT(names(), ElementsAre("finished"));
  EXPECT_THROW(file.commit(), Error);
  EXPECT_THAT(names(), ElementsAre("finished"));
}

}  // namespace
}  // namespace ballast
