// SPDX-License-Identifier: Apache-2.0
// Room in headers: edits that write one sector, and those that cannot.
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "ballast/detail/record_file.h"
#include "ballast/io.h"
#include "formats/safetensors_testing.h"

namespace ballast::safetensors {
namespace {

constexpr std::size_t kSector = 512;

HeaderEdit to(Metadata metadata) {
  HeaderEdit change{.metadata = std::move(metadata)};
  change.spare = true;
  return change;
}

ino_t inode(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_ino;
}

Checkpoint tensors(int count) {
  Checkpoint checkpoint;
  for (int i = 0; i < count; ++i)
    checkpoint.add(fmt::format("layers.{}.weight", i), Tensor::from<float>({float(i), 2, 3}, {3}));
  return checkpoint;
}

std::string data_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return file.substr(8 + length);
}

// Two files of one size differ within one sector, or not at all.
bool one_sector(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) places.push_back(i / kSector);
  return places.empty() || places.front() == places.back();
}

// Any edit after any other: the file is what a copy would be, its data is the old data, and it was written in
// place exactly where one sector changed.
TEST(SafetensorsSpare, EveryEditGivesTheCopysBytesAndIsInPlaceWhereOneSectorChanges) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
  int in_place = 0;
  int copied = 0;
  for (const int count : {0, 1, 40}) {
    const TemporaryFolder folder;
    const std::string path = folder.file("a");
    safetensors::save(tensors(count), path);
    const std::string data = data_of(contents(path));
    Metadata said;
    for (int step = 0; step < 150; ++step) {
      const std::string key = fmt::format("k{}", draw(6));
      if (draw(3) == 0)
        said.erase(key);
      else
        said[key] =
            std::string(static_cast<std::size_t>(draw(draw(4) == 0 ? 900 : 60)), 'a' + char(draw(25)));
      const std::string before = contents(path);
      const ino_t old = inode(path);
      ASSERT_FALSE(edit(path, folder.file("copy"), to(said), {.overwrite = true}));
      const bool done = edit(path, path, to(said), {.overwrite = true});
      const std::string after = contents(path);
      ASSERT_EQ(after, contents(folder.file("copy")));
      ASSERT_EQ(data_of(after), data);
      ASSERT_EQ(safetensors::open(path).metadata.value_or(Metadata()), said);
      ASSERT_EQ(done, one_sector(before, after)) << step;
      ASSERT_EQ(done, inode(path) == old);
      ASSERT_EQ(before.size() % 8, after.size() % 8);
      (done ? in_place : copied) += 1;
    }
  }
  EXPECT_GT(in_place, 150);
  EXPECT_GT(copied, 30);
}

TEST(SafetensorsSpare, TheFirstEditLeavesRoomAndSmallOnesAfterItAreInPlace) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  safetensors::save(tensors(40), path);
  EXPECT_FALSE(edit(path, path, to({{"license", "apache-2.0"}}), {.overwrite = true}));
  const std::string first = contents(path);
  EXPECT_TRUE(edit(path, path, to({{"license", "mit"}, {"author", "somebody"}}), {.overwrite = true}));
  EXPECT_TRUE(edit(path, path, to({}), {.overwrite = true}));
  EXPECT_TRUE(edit(path, path, to({{"license", "apache-2.0"}}), {.overwrite = true}));
  EXPECT_EQ(contents(path), first);
  EXPECT_TRUE(edit(path, path, to({{"note", std::string(300, 'n')}}), {.overwrite = true}));
  EXPECT_FALSE(edit(path, path, to({{"note", std::string(600, 'n')}}), {.overwrite = true}));
}

// What safetensors::save() writes afterwards is the reference's again, and so is an edit that asks for no
// room.
TEST(SafetensorsSpare, RoomIsInFilesThatWereEditedWithItAlone) {
  const TemporaryFolder folder;
  Checkpoint plain = tensors(3);
  safetensors::save(plain, folder.file("before"));
  plain.metadata = Metadata{{"a", "b"}};
  safetensors::save(plain, folder.file("plain"));
  edit(folder.file("before"), folder.file("roomy"), to({{"a", "b"}}));
  EXPECT_GT(contents(folder.file("roomy")).size(), contents(folder.file("plain")).size());
  safetensors::save(safetensors::open(folder.file("roomy")), folder.file("again"));
  EXPECT_EQ(contents(folder.file("again")), contents(folder.file("plain")));
  edit(folder.file("roomy"), folder.file("tight"), {});
  EXPECT_EQ(contents(folder.file("tight")), contents(folder.file("plain")));
}

TEST(SafetensorsSpare, AnotherNameOfTheFileKeepsItsContent) {
  const TemporaryFolder folder;
  safetensors::save(tensors(3), folder.file("a"));
  edit(folder.file("a"), folder.file("a"), to({{"k", "1"}}), {.overwrite = true});
  ASSERT_EQ(link(folder.file("a").c_str(), folder.file("backup").c_str()), 0);
  EXPECT_FALSE(edit(folder.file("a"), folder.file("a"), to({{"k", "2"}}), {.overwrite = true}));
  EXPECT_EQ(safetensors::open(folder.file("a")).metadata, (Metadata{{"k", "2"}}));
  EXPECT_EQ(safetensors::open(folder.file("backup")).metadata, (Metadata{{"k", "1"}}));
}

TEST(SafetensorsSpare, AFileThatSomebodyElseIsEditingIsWaitedForAndNotForEver) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  safetensors::save(tensors(3), path);
  edit(path, path, to({{"k", "1"}}), {.overwrite = true});
  int other = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_EQ(code_of([&] { edit(path, path, to({{"k", "2"}}), {.overwrite = true}); }), Errc::file_changed);
  EXPECT_EQ(safetensors::open(path).metadata, (Metadata{{"k", "1"}}));
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    close(other);
  });
  EXPECT_TRUE(edit(path, path, to({{"k", "3"}}), {.overwrite = true}));
  EXPECT_EQ(safetensors::open(path).metadata, (Metadata{{"k", "3"}}));
}

TEST(SafetensorsSpare, MetadataThatSomebodyElseChangedIsNotReplaced) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  safetensors::save(tensors(3), path);
  for (const bool spare : {false, true}) {
    HeaderEdit change{.metadata = Metadata{{"k", "2"}}, .replaces = Metadata{{"k", "1"}}};
    change.spare = spare;
    EXPECT_EQ(code_of([&] { edit(path, path, change, {.overwrite = true}); }), Errc::file_changed);
    edit(path, path, to({{"k", "1"}}), {.overwrite = true});
    edit(path, path, change, {.overwrite = true});
    EXPECT_EQ(safetensors::open(path).metadata, (Metadata{{"k", "2"}}));
  }
}

TEST(SafetensorsSpare, EditsAtOnceLoseNothingOfEachOtherInSilence) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  constexpr int kThreads = 4;
  constexpr int kEdits = 25;
  for (const std::size_t size : {1U, 700U}) {  // in the sector, and mostly by a new file
    safetensors::save(tensors(3), path, {.overwrite = true});
    std::mutex mutex;
    std::set<std::string> said;
    {
      std::vector<std::jthread> all;
      for (int thread = 0; thread < kThreads; ++thread) {
        all.emplace_back([&, thread] {
          for (int i = 0; i < kEdits; ++i) {
            const std::string key = std::to_string(thread) + "." + std::to_string(i);
            HeaderEdit change;
            change.spare = true;
            try {
              change.replaces = safetensors::open(path, {.io = Io::read}).metadata.value_or(Metadata());
            } catch (const Error&) {
              continue;  // read while it was written
            }
            change.metadata = change.replaces;
            (*change.metadata)[key] = std::string(size, 'x');
            try {
              edit(path, path, change, {.overwrite = true, .durable = false});
              const std::lock_guard lock(mutex);
              said.insert(key);
            } catch (const Error& error) {
              EXPECT_EQ(error.code(), Errc::file_changed) << error.what();
            }
          }
        });
      }
    }
    std::set<std::string> there;
    const Checkpoint file = safetensors::open(path);
    for (const auto& entry : *file.metadata) there.insert(entry.first);
    EXPECT_EQ(there, said);
    EXPECT_GE(said.size(), std::size_t{kEdits});
  }
}

TEST(SafetensorsSpare, WithoutOverwriteNothingIsChanged) {
  const TemporaryFolder folder;
  safetensors::save(tensors(3), folder.file("a"));
  edit(folder.file("a"), folder.file("a"), to({{"k", "1"}}), {.overwrite = true});
  EXPECT_EQ(code_of([&] {
              edit(folder.file("a"), folder.file("a"), to({{"k", "2"}}));
            }),
            Errc::already_exists);
  EXPECT_EQ(safetensors::open(folder.file("a")).metadata, (Metadata{{"k", "1"}}));
}

TEST(SafetensorsSpare, RecordsKeepTheirAlignmentAndTheirChecksums) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  save_record(tensors(5), path);
  for (const char* value : {"short", "a longer one", ""}) {
    Metadata said = *safetensors::open(path).metadata;
    said["note"] = value;
    edit(path, path, to(said), {.overwrite = true});
    const std::string file = contents(path);
    EXPECT_EQ((file.size() - data_of(file).size()) % 64, 0U);
    EXPECT_TRUE(check_record(open_record(path)).empty());
  }
}

}  // namespace
}  // namespace ballast::safetensors
