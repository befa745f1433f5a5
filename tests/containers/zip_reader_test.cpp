// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/file.h"
#include "containers/zip.h"
#include "formats/python.h"

namespace ballast {
namespace {

using containers::ZipArchive;
using containers::ZipEntry;
using containers::ZipMethod;

using testing::HasSubstr;

// Archives by Python's zipfile: the oracle for what they hold is the script itself.
constexpr const char* kMakeZips = R"(
import sys, zipfile, io
out = sys.argv[1]
class Pipe(io.RawIOBase):                    # cannot seek: zipfile streams, with descriptors
    def __init__(self, f): self.f = f
    def writable(self): return True
    def write(self, b): return self.f.write(b)
    def flush(self): self.f.flush()
def fill(z, **kw):
    z.writestr('a/data.pkl', b'pickle ' * 300)
    z.writestr('a/data/0', bytes(range(256)) * 4)
    z.writestr('a/empty', b'')
    z.writestr('a/\u00e4.txt', 'umlaut')
for name, method in (('stored', zipfile.ZIP_STORED), ('deflated', zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(f'{out}/{name}.zip', 'w', method) as z: fill(z)
    with open(f'{out}/streamed_{name}.zip', 'wb') as f, zipfile.ZipFile(Pipe(f), 'w', method) as z: fill(z)
    with zipfile.ZipFile(f'{out}/zip64_{name}.zip', 'w', method) as z:
        for n, b in (('a/data.pkl', b'pickle ' * 300), ('a/data/0', bytes(range(256)) * 4), ('a/empty', b''), ('a/\u00e4.txt', b'umlaut')):
            with z.open(n, 'w', force_zip64=True) as e: e.write(b)
with zipfile.ZipFile(f'{out}/comment.zip', 'w') as z:
    fill(z); z.comment = b'hello'
with zipfile.ZipFile(f'{out}/folders.zip', 'w') as z:
    z.writestr('a/', b''); fill(z)
inner = open(f'{out}/stored.zip', 'rb').read()
with zipfile.ZipFile(f'{out}/nested.zip', 'w') as z:
    fill(z); z.writestr('a/inner.pt', inner)
)";

const std::string& python_zips() {
  static const std::string folder = run_python("zips", kMakeZips);
  return folder;
}

std::string pickle_text() {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "pickle ";
  return text;
}

std::string content(const ZipArchive& archive, std::string_view name) {
  const ZipEntry* entry = archive.find(name);
  if (entry == nullptr) return "(no such entry)";
  const auto bytes = archive.read(*entry, 1U << 20U);
  const auto storage = archive.storage(*entry, Access::map);
  EXPECT_EQ(storage->size(), bytes.size());
  if (!bytes.empty()) {
    EXPECT_EQ(std::memcmp(storage->data(), bytes.data(), bytes.size()), 0);
  }
  return std::string(as_text(bytes));
}

std::shared_ptr<const Storage> storage_of(std::string text) {
  auto held = std::make_shared<std::string>(std::move(text));
  return Storage::borrow(static_cast<const void*>(held->data()), held->size(), [held] {});
}

Errc code_of(const std::string& bytes) {
  try {
    const ZipArchive archive = ZipArchive::open(memory_source(storage_of(bytes), "test.zip"));
    for (const ZipEntry& entry : archive.entries()) archive.check_crc(entry);
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::load_failed;  // stands for "read without complaint"
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ZipOfPython : public testing::TestWithParam<const char*> {};

TEST_P(ZipOfPython, HoldsWhatWasWritten) {
  const std::string path = python_zips() + "/" + GetParam() + ".zip";
  const ZipArchive archive = ZipArchive::open(File::open(path));
  EXPECT_EQ(content(archive, "a/data.pkl"), pickle_text());
  EXPECT_EQ(content(archive, "a/data/0").size(), 1024U);
  EXPECT_EQ(content(archive, "a/data/0")[513], '\x01');
  EXPECT_EQ(content(archive, "a/empty"), "");
  EXPECT_EQ(content(archive, "a/\u00e4.txt"), "umlaut");
  EXPECT_EQ(archive.find("a/none"), nullptr);
  EXPECT_EQ(archive.find("A/DATA.PKL"), nullptr);
  EXPECT_NE(archive.find("A/DATA.PKL", true), nullptr);
  for (const ZipEntry& entry : archive.entries()) EXPECT_TRUE(archive.check_crc(entry)) << entry.name;
}

TEST_P(ZipOfPython, IsTheSameInsideAnotherFile) {
  const std::string bytes = slurp(python_zips() + "/" + GetParam() + ".zip");
  const std::string path = testing::TempDir() + "/inside_" + GetParam();
  std::ofstream(path, std::ios::binary) << "lead" << bytes << "trail";
  const ZipArchive archive = ZipArchive::open(window(File::open(path), 4, bytes.size()));
  EXPECT_EQ(content(archive, "a/data.pkl"), pickle_text());
  const auto span = archive.storage(*archive.find("a/empty"), Access::map)->source_span();
  if (archive.find("a/empty")->method == ZipMethod::stored) {
    EXPECT_GT(span.value().offset, 4U);
  }
}

TEST_P(ZipOfPython, NeverReadsAsSomethingElseWhenCut) {
  const std::string bytes = slurp(python_zips() + "/" + GetParam() + ".zip");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Errc code = code_of(bytes.substr(0, size));
    // A cut comment or a nested archive's end may be found; everything else is plainly cut.
    ASSERT_TRUE(code == Errc::truncated || std::string(GetParam()) == "nested") << size << ' ' << name(code);
    ASSERT_NE(code, Errc::load_failed) << size;
  }
}

TEST_P(ZipOfPython, SurvivesEveryFlippedByteOfItsDirectories) {
  const std::string bytes = slurp(python_zips() + "/" + GetParam() + ".zip");
  const std::size_t directory = bytes.find("PK\x01\x02");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at > 120 && at < directory) continue;  // content: the checksum's business
    for (const unsigned change : {0x01U, 0x80U, 0xFFU}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ change);
      static_cast<void>(code_of(damaged));  // no crash, no hang; sanitizers watch
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zipfile, ZipOfPython,
                         testing::Values("stored", "deflated", "streamed_stored", "streamed_deflated",
                                         "zip64_stored", "zip64_deflated", "comment", "folders", "nested"),
                         [](const auto& spec) { return std::string(spec.param); });

TEST(Zip, NotesWhatIsUnusual) {
  const std::string folder = python_zips();
  EXPECT_TRUE(ZipArchive::open(File::open(folder + "/stored.zip")).anomalies().empty());
  EXPECT_THAT(ZipArchive::open(File::open(folder + "/comment.zip")).anomalies().at(0),
              HasSubstr("comment of 5 bytes"));
  EXPECT_THAT(ZipArchive::open(File::open(folder + "/deflated.zip")).anomalies().at(0),
              HasSubstr("4 of 4 entries are deflated"));
  const auto trailing =
      ZipArchive::open(memory_source(storage_of(slurp(folder + "/stored.zip") + "junk"), "x"));
  EXPECT_THAT(trailing.anomalies().at(0), HasSubstr("4 bytes after the end"));
}

TEST(Zip, SaysHowManyBytesACutFileHas) {
  try {
    static_cast<void>(ZipArchive::open(memory_source(storage_of("PK\x03\x04 and not much more"), "net.pt")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::truncated);
    EXPECT_THAT(error.what(), HasSubstr("of 22 bytes"));
    EXPECT_THAT(error.what(), HasSubstr("cut download?"));
  }
}

TEST(Zip, KeepsStoragesAliveWithoutTheArchive) {
  std::shared_ptr<const Storage> storage;
  {
    const ZipArchive archive = ZipArchive::open(File::open(python_zips() + "/deflated.zip"));
    storage = archive.storage(*archive.find("a/data/0"), Access::read);
  }
  EXPECT_EQ(storage->data()[7], std::byte{7});
}

TEST(Zip, LimitsWhatItReadsAtOnce) {
  const ZipArchive archive = ZipArchive::open(File::open(python_zips() + "/stored.zip"));
  EXPECT_THROW(static_cast<void>(archive.read(*archive.find("a/data/0"), 1023)), Error);
  EXPECT_EQ(archive.read(*archive.find("a/data/0"), 1024).size(), 1024U);
}

TEST(Zip, ComparesEveryLocalHeaderWhenTheArchiveIsOpened) {
  std::string bytes = slurp(python_zips() + "/stored.zip");
  bytes[0] = 'X';
  EXPECT_THROW(static_cast<void>(ZipArchive::open(memory_source(storage_of(bytes), "x"))), Error);
}

TEST(Zip, AcceptsAnEmptyArchive) {
  EXPECT_TRUE(
      ZipArchive::open(memory_source(storage_of(std::string("PK\x05\x06", 4) + std::string(18, '\0')), "x"))
          .entries()
          .empty());
}

TEST(Zip, RefusesACommentThatLooksLikeAnotherEnd) {
  std::string bytes = slurp(python_zips() + "/stored.zip");
  bytes[bytes.size() - 2] = 30;
  EXPECT_EQ(code_of(bytes + "PK\x05\x06" + std::string(26, 'x')), Errc::zip_ambiguous);
}

}  // namespace
}  // namespace ballast
