// SPDX-License-Identifier: Apache-2.0
#include "containers/zip_writer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ballast/error.h"
#include "base/file.h"
#include "containers/zip.h"
#include "formats/python.h"

namespace ballast {
namespace {

using containers::ZipArchive;
using containers::ZipRecord;
using containers::ZipWriter;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::shared_ptr<const Storage> storage_of(std::string text) {
  auto held = std::make_shared<std::string>(std::move(text));
  return Storage::borrow(static_cast<const void*>(held->data()), held->size(), [held] {});
}

ZipRecord record(std::string name, std::string text) {
  const std::uint64_t size = text.size();
  return {.name = std::move(name), .storage = storage_of(std::move(text)), .size = size};
}

void write(ZipWriter& writer, const std::string& path, const Progress& progress = {}) {
  AtomicFile file(path, true);
  writer.write(file, progress);
  file.commit();
}

TEST(ZipWriter, RepeatsPyTorchsFileByteForByte) {
  if (!has_torch()) GTEST_SKIP() << "no torch in " << BALLAST_PYTHON;
  const std::string folder = run_python("repeat", R"(
import sys, torch
torch.manual_seed(1)
torch.save({'a': torch.randn(3), 'b': torch.randn(1000, 1000), 'e': torch.empty(0), 'c': [torch.arange(i) for i in range(40)]}, sys.argv[1] + '/t.pt')
)");
  const ZipArchive archive = ZipArchive::open(File::open(folder + "/t.pt"));
  std::vector<ZipRecord> records;
  for (const containers::ZipEntry& entry : archive.entries()) {
    records.push_back({.name = std::string(entry.name),
                       .storage = archive.storage(entry, Access::read),
                       .size = entry.size});
  }
  ZipWriter writer(std::move(records));
  write(writer, folder + "/ours.pt");
  EXPECT_EQ(slurp(folder + "/ours.pt").size(), writer.file_size());
  EXPECT_TRUE(slurp(folder + "/ours.pt") == slurp(folder + "/t.pt"));
}

TEST(ZipWriter, IsReadByZipfileAndUnzip) {
  std::vector<ZipRecord> records = {record("a/first", "one"), record("a/empty", ""),
                                    record("a/large", std::string(20'000'001, 'x'))};
  for (int i = 0; i < 3000; ++i)
    records.push_back(record("a/" + std::to_string(i), std::string(static_cast<std::size_t>(i), 'y')));
  ZipWriter writer(std::move(records));
  const std::string path = testing::TempDir() + "/writer.zip";
  std::uint64_t reported = 0;
  write(writer, path, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 3 + 20'000'001 + 2999U * 3000 / 2);
    EXPECT_GT(done, reported);
    reported = done;
  });
  EXPECT_EQ(reported, 3 + 20'000'001 + 2999U * 3000 / 2);
  run_python("check", R"(
import sys, zipfile, subprocess
z = zipfile.ZipFile(sys.argv[2])
assert z.testzip() is None
assert len(z.namelist()) == 3003
assert z.read('a/large') == b'x' * 20000001 and z.read('a/empty') == b'' and z.read('a/2999') == b'y' * 2999
subprocess.run(['unzip', '-tq', sys.argv[2]], check=True)
)",
             path);
  const ZipArchive archive = ZipArchive::open(File::open(path));
  EXPECT_TRUE(archive.anomalies().empty());
  for (const containers::ZipEntry& entry : archive.entries()) EXPECT_TRUE(archive.check_crc(entry));
}

TEST(ZipWriter, AlignsContentAlsoBeyondFourGigabytes) {
  const std::uint64_t huge = (std::uint64_t{1} << 32U) + 4;
  const ZipWriter writer({{.name = "a/0", .size = 0xFFFFFFFE},
                          {.name = "a/1", .size = huge},
                          {.name = "a/2", .size = 5},
                          {.name = "a/3", .size = 5}});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(writer.content_at(i) % 64, 0U);
  // Header 30, name 3, zip64 field 4 + 16, "FB" field 4: 64 with padding; a descriptor of 16 bytes behind
  // a/0.
  EXPECT_EQ(writer.content_at(0), 64U);
  const std::uint64_t second = 64 + std::uint64_t{0xFFFFFFFE} + 16;
  EXPECT_EQ(writer.content_at(1), (second + 30 + 3 + 4 + 24 + 4 + 63) / 64 * 64);
  const std::uint64_t third = writer.content_at(1) + huge + 24;
  EXPECT_EQ(writer.content_at(2), (third + 30 + 3 + 4 + 8 + 4 + 63) / 64 * 64);
}

TEST(ZipWriter, LeavesNothingBehindWhenReadingFails) {
  const std::string path = testing::TempDir() + "/failing.zip";
  auto failing =
      Storage::deferred(1000, [](std::span<std::byte>) { throw Error(Errc::io_error, "disk", "gone"); });
  ZipWriter writer({record("a/0", "fine"), {.name = "a/1", .storage = failing, .size = 1000}});
  EXPECT_THROW(write(writer, path), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace ballast
