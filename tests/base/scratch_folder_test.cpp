// SPDX-License-Identifier: Apache-2.0
#include "base/scratch_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/atomic_file.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The system's folder for temporary files is one of the test's own.
class ScratchFolderTest : public Scratch {
 protected:
  ScratchFolderTest() : before_(getenv("TMPDIR") == nullptr ? "" : getenv("TMPDIR")) {
    setenv("TMPDIR", path("").c_str(), 1);
  }

  ~ScratchFolderTest() override {
    if (before_.empty())
      unsetenv("TMPDIR");
    else
      setenv("TMPDIR", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

TEST_F(ScratchFolderTest, IsForItsOwnerAloneAndGoesWithItsFiles) {
  {
    const ScratchFolder folder("work");
    struct stat status {};
    ASSERT_EQ(stat(folder.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U);
    save_text("x", folder.path() + "a", false);
    EXPECT_EQ(names().size(), 1U);
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(ScratchFolderTest, ASignalHandlerRemovesItWithFinishedAndUnfinishedFiles) {
  const ScratchFolder folder("work");
  for (int i = 0; i < 300; ++i)  // more than one answer of the kernel's
    save_text("finished", folder.path() + std::string(60, 'n') + std::to_string(i), false);
  AtomicFile file(folder.path() + "a", false);
  file.append("unfinished");
  write(path("somebody's"), "stays");
  discard_unfinished_files();
  EXPECT_THAT(names(), ElementsAre("somebody's"));
}

TEST_F(ScratchFolderTest, WhatAKilledProcessLeftGoesWithTheNextAndWhatALivingOneHasStays) {
  const ScratchFolder living("work");
  const pid_t child = fork();
  if (child == 0) {
    const ScratchFolder left("work");
    save_text("secret", left.path() + "a", false);
    _exit(names().size() == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(names().size(), 2U);
  const ScratchFolder next("work");
  EXPECT_EQ(names().size(), 2U);  // its own and the living one's
  EXPECT_TRUE(std::filesystem::exists(living.path()));
}

TEST_F(ScratchFolderTest, ALinkOfThatNameIsNotFollowed) {
  std::filesystem::create_directory(path("kept"));
  write(path("kept/a"), "stays");
  std::string left;
  {
    const ScratchFolder gone("work");
    left = gone.path().substr(0, gone.path().size() - 1);
  }
  std::filesystem::create_directory_symlink(path("kept"), left);
  const ScratchFolder next("work");
  EXPECT_EQ(content(path("kept/a")), "stays");
}

TEST_F(ScratchFolderTest, AFolderThatIsNotThereIsSaid) {
  setenv("TMPDIR", path("none").c_str(), 1);
  EXPECT_EQ(error_of([] { const ScratchFolder folder("work"); }).code(), Errc::io_error);
}

}  // namespace
}  // namespace ballast
