// SPDX-License-Identifier: Apache-2.0
// The zip tricks of tests/attacks, at the level of the zip reader. What only a PyTorch reader can refuse
// (which folder, which records) is tested there.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "ballast/error.h"
#include "base/file.h"
#include "containers/zip.h"
#include "formats/python.h"

namespace ballast {
namespace {

constexpr const char* kMake = R"(
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import zip_attacks
with open(sys.argv[1] + '/expect', 'w') as expect:
    for sample in zip_attacks.samples():
        with open(sys.argv[1] + '/' + sample.name, 'wb') as f: f.write(sample.data)
        print(sample.name, sample.code, file=expect)
)";

// Well-formed archives whose content is the matter.
const std::set<std::string> kAboveZip = {
    "zip-two-prefixes", "zip-two-prefixes-order", "zip-root-and-prefix", "zip-no-data",
    "zip-not-torch",    "zip-empty-data",         "zip-byteorder-junk",  "zip-prefix-script"};

std::string verdict(const std::string& path) {
  try {
    const containers::ZipArchive archive = containers::ZipArchive::open(File::open(path));
    for (const containers::ZipEntry& entry : archive.entries()) archive.check_crc(entry);
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
  return "clean";
}

TEST(ZipAttacks, EachIsRefusedWithItsCode) {
  const std::string folder = run_python("zip_attacks", kMake, "'" BALLAST_TEST_DATA "/attacks'");
  std::ifstream expect(folder + "/expect");
  std::string sample;
  std::string code;
  int count = 0;
  while (expect >> sample >> code) {
    if (kAboveZip.contains(sample)) continue;
    const std::string found = verdict(folder + "/" + sample);
    if (code == "refused-any")
      EXPECT_NE(found, "clean") << sample;
    else
      EXPECT_EQ(found, code) << sample;
    ++count;
  }
  EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace ballast
